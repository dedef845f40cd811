#include "node/models/model_directory.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "node/models/model_name.h"

using namespace lockstep;

namespace {

class NamedModel final : public ModelService {
 public:
  explicit NamedModel(std::string name) { status_.name = std::move(name); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return nullptr; }
  ModelStatus status() const override { return status_; }
  std::vector<int32_t> stop_ids() const override { return {}; }
  ModelChatFormat chat_format() const override { return std::shared_ptr<const ChatFormat>(); }
  SamplingDefaults sampling_defaults() const override { return {}; }
  Result<uint64_t> generate(GenerateRequest, EventSink) override {
    return Error{ErrorCode::kInternal, "not here"};
  }
  void cancel(uint64_t) override {}

 private:
  ModelStatus status_;
};

std::shared_ptr<ModelDirectory> directory(const std::vector<std::string>& names) {
  ModelServices models;
  for (const std::string& name : names) models.push_back(std::make_shared<NamedModel>(name));
  return std::make_shared<FixedModels>(models);
}

// The name of the model found, or the error's sentence.
std::string found(ModelDirectory& models, std::string_view name) {
  const auto model = models.find(name);
  return model.ok() ? model.value()->status().name : model.error().message;
}

}  // namespace

TEST_CASE("a model is found by its name, ignoring case, or an unambiguous last component") {
  const auto models = directory({"org/Tiny", "other/Large", "more/large", "ORG/TINY"});
  CHECK(found(*models, "org/Tiny") == "org/Tiny");
  CHECK(found(*models, "ORG/TINY") == "ORG/TINY");
  CHECK(found(*models, "Other/LARGE") == "other/Large");
  CHECK(found(*models, "large") ==
        R"(the model "large" is not loaded; did you mean "more/large" or "other/Large"?)");
  CHECK(found(*directory({"org/Tiny"}), "tiny") == "org/Tiny");
  CHECK(model_named(models->models(), "nothing") == nullptr);
}

TEST_CASE("no name means the only model") {
  CHECK(found(*directory({"a"}), "") == "a");
  const auto none = directory({})->find("");
  REQUIRE(!none.ok());
  CHECK(none.error().code == ErrorCode::kInvalidArgument);
  CHECK(found(*directory({"a", "b"}), "") == R"("model" is required; loaded: "a", "b")");
}

TEST_CASE("an unknown name gets similar names as suggestions, or all names") {
  const auto models = directory({"qwen3-8b", "llama-70b"});
  CHECK(found(*models, "qwen3-8") ==
        R"(the model "qwen3-8" is not loaded; did you mean "qwen3-8b"?)");
  CHECK(found(*models, "gpt-5") ==
        R"(the model "gpt-5" is not loaded; loaded: "qwen3-8b", "llama-70b")");
  CHECK(found(*directory({}), "x") == R"(the model "x" is not loaded; loaded: none)");
  CHECK(models->find("gpt-5").error().code == ErrorCode::kNotFound);
}

TEST_CASE("two directories act as one, and the first of two equal names wins") {
  const auto first = directory({"own", "Same"});
  const auto second = directory({"Same", "SHARED", "OWN"});
  JoinedModels both(first, second);
  REQUIRE(both.models().size() == 4);
  CHECK(both.models()[1] == first->models()[1]);
  CHECK(both.find("Same").value() == first->models()[1]);
  CHECK(both.find("shared").value() == second->models()[1]);
  CHECK(both.find("OWN").value() == second->models()[2]);
  CHECK(both.find("own").value() == first->models()[0]);
  CHECK(found(both, "sharde") == R"(the model "sharde" is not loaded; did you mean "SHARED"?)");
  CHECK(!both.find("").ok());
  JoinedModels alone(directory({}), directory({"only"}));
  CHECK(found(alone, "") == "only");
  CHECK(found(alone, "onyl") == R"(the model "onyl" is not loaded; did you mean "only"?)");
}

TEST_CASE("a model's name comes from its path") {
  CHECK(model_name_of("/models/stories260K") == "stories260K");
  CHECK(model_name_of("/models/stories260K/") == "stories260K");
  CHECK(model_name_of("./models/../models/stories260K") == "stories260K");
  CHECK(model_name_of("/models/phi-4.gguf") == "phi-4");
  CHECK(model_name_of("Qwen/Qwen3-0.6B") == "Qwen/Qwen3-0.6B");
  CHECK(model_name_of("Qwen/Qwen3-0.6B@main") == "Qwen/Qwen3-0.6B");
  CHECK(model_name_of("org/name/file.gguf@main") == "file");
  CHECK(model_name_of("/cache/models--Qwen--Qwen3-0.6B/snapshots/abc") == "Qwen/Qwen3-0.6B");
  CHECK(model_name_of("alone") == "alone");
  CHECK(model_name_of("").empty());
}

TEST_CASE("the request to keep a model goes to the directory that has it") {
  class OnDemand final : public ModelDirectory {
   public:
    explicit OnDemand(std::shared_ptr<ModelDirectory> models) : models_(std::move(models)) {}
    ModelServices models() const override { return models_->models(); }
    Result<std::shared_ptr<ModelService>> find(std::string_view name) override {
      return models_->find(name);
    }
    bool is_on_demand(std::string_view name) const override { return name == "b"; }
    void keep(std::string_view name, std::chrono::milliseconds time) override {
      told += std::string(name) + " " + std::to_string(time.count());
    }
    std::string told;

   private:
    const std::shared_ptr<ModelDirectory> models_;
  };
  const auto second = std::make_shared<OnDemand>(directory({"a", "b"}));
  JoinedModels both(directory({"a"}), second);
  CHECK(!both.is_on_demand("a"));
  CHECK(both.is_on_demand("b"));
  both.keep("a", std::chrono::milliseconds(5));
  both.keep("b", std::chrono::milliseconds(7));
  CHECK(second->told == "b 7");
}
