#include "hub/files/choose_files.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <set>

using namespace lockstep;

namespace {

const ModelId kId{.repository = "org/name"};

ModelFiles listed(std::initializer_list<const char*> names) {
  ModelFiles files{.commit = std::string(40, 'a')};
  for (const char* name : names) files.files.push_back({.name = name, .size = 1000, .hash = name});
  return files;
}

std::set<std::string> names_of(const Result<ModelFiles>& files) {
  REQUIRE(files.ok());
  std::set<std::string> names;
  for (const HubFile& file : files.value().files) names.insert(file.name);
  return names;
}

}  // namespace

TEST_CASE("patterns support stars and question marks") {
  CHECK(matches("*", ""));
  CHECK(matches("*.json", "a/b.json"));
  CHECK(matches("a*b*c", "a--bb--c"));
  CHECK(matches("a?c", "abc"));
  CHECK(!matches("a?c", "ac"));
  CHECK(!matches("*.json", "a.jsonl"));
  CHECK(!matches("", "a"));
  CHECK(!matches("*a*a*a*a*a*a*a*b", std::string(10'000, 'a')));
}

TEST_CASE("the weights are chosen once, with the other files that are read") {
  const auto files =
      listed({"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
              "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
              "model.safetensors.index.json", "consolidated.safetensors", "original/a.safetensors",
              "pytorch_model.bin", "onnx/model.onnx", "1_Pooling/config.json", ".gitattributes",
              "mtp.safetensors", "mtp/model.safetensors", "mtp/config.json", "mtp/x.safetensors"});
  const auto names = names_of(choose_files(files, kId, {}));
  CHECK(names == std::set<std::string>{"config.json", "tokenizer.json", "tokenizer_config.json",
                                       "chat_template.jinja", "model-00001-of-00002.safetensors",
                                       "model-00002-of-00002.safetensors",
                                       "model.safetensors.index.json", "1_Pooling/config.json",
                                       "mtp.safetensors", "mtp/model.safetensors",
                                       "mtp/config.json"});
  CHECK(names_of(choose_files(files, kId, {.all = true})).size() == 17);
  CHECK(names_of(choose_files(files, kId, {.all = true, .exclude = {"onnx/*", "*.bin"}})).size() ==
        15);
  const auto alone =
      names_of(choose_files(listed({"config.json", "consolidated.safetensors"}), kId, {}));
  CHECK(alone.contains("consolidated.safetensors"));
}

TEST_CASE("a single GGUF model is chosen, one of several must be named") {
  CHECK(names_of(choose_files(listed({"a.gguf", "mmproj-a.gguf"}), kId, {})) ==
        std::set<std::string>{"a.gguf"});
  const auto several =
      listed({"a-Q4.gguf", "a-Q8-00001-of-00002.gguf", "a-Q8-00002-of-00002.gguf"});
  const auto refused = choose_files(several, kId, {});
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("a-Q4.gguf (1.00 KB), a-Q8-00001-of-00002.gguf (2.00 KB)") !=
        std::string::npos);
  CHECK(names_of(choose_files(several, kId, {.include = {"*Q8*"}})).size() == 2);
  const ModelId named{.repository = "org/name", .file = "a-Q8-00001-of-00002.gguf"};
  CHECK(names_of(choose_files(several, named, {})).size() == 2);
  const ModelId missing{.repository = "org/name", .file = "b.gguf"};
  CHECK(!choose_files(several, missing, {}).ok());
  CHECK(!choose_files(listed({"config.json", "model.bin"}), kId, {}).ok());
}
