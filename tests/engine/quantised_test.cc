#include <stdlib.h>

#include <filesystem>
#include <numeric>

#include "model/quantise_model.h"
#include "support/rank_threads.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "lockstep_quantised_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string golden(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR "/tests/data/golden/") + name;
}

Answer answer_of(const std::string& model, const Setup& setup) {
  std::vector<int32_t> prompt(24);
  std::iota(prompt.begin(), prompt.end(), 5);
  const GenerateRequest request{.prompt = prompt, .max_tokens = 8, .prompt_logits = true};
  Outcome outcome = run_ranks(model, setup, {request});
  REQUIRE(outcome.answers.size() == 1);
  REQUIRE(outcome.answers[0].error.empty());
  return std::move(outcome.answers[0]);
}

void quantise(const std::string& from, const fs::path& to, int bits) {
  const auto report = quantise_model({.from = from, .to = to, .bits = bits, .threads = 2});
  REQUIRE_MESSAGE(report.ok(), report.error().message);
}

}  // namespace

TEST_CASE("a model quantised on load gives the logits of the quantised folder, for all ranks") {
  for (const char* name : {"llama3-bf16", "qwen3moe-bf16", "deepseekv3-bf16", "glm4moe-bf16"}) {
    CAPTURE(name);
    const Folder work;
    const fs::path folder = work.path() / "quantised";
    quantise(golden(name), folder, 4);
    const Answer wanted = answer_of(folder.string(), {});
    REQUIRE(wanted.logits.size() == 24);
    CHECK(wanted.logits != answer_of(golden(name), {}).logits);
    for (const std::vector<double>& shares : {std::vector<double>{1}, {1, 1, 1}, {3, 1}}) {
      Setup setup;
      setup.shares = shares;
      setup.threads = 2;
      const Answer folder_answer = answer_of(folder.string(), setup);
      setup.bits = 4;
      const Answer load_answer = answer_of(golden(name), setup);
      CHECK(folder_answer.logits == wanted.logits);
      CHECK(load_answer.logits == wanted.logits);
      CHECK(load_answer.tokens == wanted.tokens);
    }
  }
}

TEST_CASE("every number of bits gives on load what the folder gives") {
  for (const int bits : {2, 3, 5, 6, 8}) {
    CAPTURE(bits);
    const Folder work;
    quantise(golden("llama3-bf16"), work.path() / "quantised", bits);
    Setup setup;
    const Answer wanted = answer_of((work.path() / "quantised").string(), setup);
    setup.bits = bits;
    CHECK(answer_of(golden("llama3-bf16"), setup).logits == wanted.logits);
  }
}
