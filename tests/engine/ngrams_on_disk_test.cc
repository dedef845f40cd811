// A table of n-grams that stays in the model's files: the bits of the table in memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/load/open_model.h"
#include "model/ngrams/ngram_files.h"
#include "model/quantise/quantise_model.h"
#include "support/drafted.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

GenerateRequest logits_and_text(const std::string& folder, uint64_t seed) {
  GenerateRequest request{
      .prompt = read_golden(folder).prompt, .max_tokens = 24, .prompt_logits = true};
  request.sampling.temperature = 0.8F;
  request.sampling.seed = seed;
  return request;
}

// Two answers that are computed together.
std::vector<Answer> answers_of(const std::string& model, const std::string& prompts, Setup setup,
                               bool ngrams_on_disk) {
  setup.ngrams_on_disk = ngrams_on_disk;
  auto answers =
      run_and_count(model, setup, {logits_and_text(prompts, 1), logits_and_text(prompts, 2)})
          .answers;
  for (const Answer& answer : answers) CHECK(answer.error == "");
  return answers;
}

void check_same_answers(const std::string& model, const std::string& prompts, const Setup& setup) {
  const auto expected = answers_of(model, prompts, setup, false);
  const auto found = answers_of(model, prompts, setup, true);
  REQUIRE(found.size() == 2);
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].tokens.size() == 24);
    CHECK(same_bits(found[i], expected[i]));
  }
}

}  // namespace

TEST_CASE("a table of n-grams on the disk gives the same bits, however the model is cut") {
  for (const char* name : {"qwen4exp-bf16", "qwen4exp-fp8"}) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    for (const Setup& setup :
         {Setup{}, Setup{.shares = {2, 1}}, Setup{.shares = {1, 1, 1, 1}, .batch_tokens_max = 5},
          Setup{.shares = {1, 1}, .stages = 2}, Setup{.exact = true, .draft_layer = true}}) {
      CAPTURE(setup.shares.size());
      check_same_answers(folder, folder, setup);
    }
  }
}

TEST_CASE("a quantised table of n-grams on the disk gives the same bits") {
  const std::string from = golden_folder("qwen4exp-bf16");
  for (const int bits : {4, 8}) {
    CAPTURE(bits);
    const TemporaryFolder work;
    const auto to = work.path() / "model";
    REQUIRE(quantise_model({.from = from, .to = to, .bits = bits, .threads = 2}).ok());
    check_same_answers(to.string(), from, {.shares = {2, 1}});
  }
}

TEST_CASE(
    "a model without a table of n-grams, or with one that is not stored as used, is refused") {
  const std::string folder = golden_folder("llama3-bf16");
  const Setup setup{.ngrams_on_disk = true};
  const auto errors =
      try_ranks_with(links_of(setup), folder, setup, [](Engine&, int) { return Status(Ok{}); });
  REQUIRE(errors.size() == 1);
  CHECK(errors[0] == "this model has no table of n-grams; leave out --ngrams-on-disk");

  const auto model = open_model("shape:qwen3-0.6b?format=bf16&layers=1");
  REQUIRE(model.ok());
  const ModelConfig& config = model.value().config;
  NgramConfig table;
  table.row = config.hidden;
  table.part_rows = config.heads * config.head_dim;
  const auto refused = [&](const std::string& name) {
    const auto files = NgramFiles::open(model.value().source, table, std::vector{name}, {0, 4});
    REQUIRE(!files.ok());
    return files.error().message;
  };
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  CHECK(refused(name) == name +
                             " is converted while it is read and cannot stay on the disk; leave "
                             "out --ngrams-on-disk");
  CHECK(refused("absent.weight").find("has no tensor absent") != std::string::npos);
}
