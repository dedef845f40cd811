#include <doctest/doctest.h>

#include "model/forward/model.h"
#include "model/load/open_model.h"
#include "support/golden.h"
#include "support/model_copy.h"
#include "support/rank_threads.h"

using namespace lockstep;
using namespace std::string_literals;

namespace {

const std::string kNotNumbers = " are not numbers (NaN or infinite): the checkpoint or its ";
const std::string kNanBf16 = "\xc0\x7f"s, kInfinityBf16 = "\x80\x7f"s;

// Every way in which a request can end at its logits, and the resulting error.
std::vector<std::string> errors_of(const ModelCopy& model, const Setup& setup) {
  const std::vector<int32_t> prompt{5, 6, 7};
  const std::vector<GenerateRequest> requests{
      {.prompt = prompt, .max_tokens = 4},
      {.prompt = prompt, .max_tokens = 4, .sampling = {.temperature = 0.7f, .seed = 3}},
      {.prompt = prompt, .max_tokens = 4, .sampling = {.temperature = 1, .top_k = 5}},
      {.prompt = prompt, .max_tokens = 4, .sampling = {.temperature = 1, .top_p = 0.5f}},
      {.prompt = prompt, .max_tokens = 4, .prompt_logits = true},
      {.prompt = prompt, .max_tokens = 0, .prompt_logits = true},
      {.prompt = prompt, .max_tokens = 0, .pooling = Pooling::kMean},
      {.prompt = prompt, .max_tokens = 0, .pooling = Pooling::kLast}};
  std::vector<std::string> errors;
  for (Answer& answer : run_ranks(model.path(), setup, requests).answers) {
    CHECK(answer.tokens.empty());
    if (!answer.error.empty()) CHECK(answer.logits.empty());
    errors.push_back(std::move(answer.error));
  }
  return errors;
}

// Loads the model on one rank; returns the error sentence.
std::string load_error(const ModelCopy& copy) {
  std::vector<std::unique_ptr<Link>> links(1);
  const auto engine = load_engine(
      {.spec = {.model = copy.path(), .threads = 1}, .kernels = available_kernels().back()},
      Group({.links = std::move(links)}));
  return engine.ok() ? "" : engine.error().message;
}

}  // namespace

TEST_CASE("a model that computes NaN ends each request with a sentence, on any ranks") {
  const struct {
    const char* model;
    const char* tensor;
  } cases[] = {{"llama3-bf16", "model.norm.weight"},
               {"llama3-bf16", "model.layers.0.mlp.down_proj.weight"},
               {"llama3-q4-g64", "model.layers.0.mlp.down_proj.scales"},
               {"llama3-q4-g64", "model.layers.1.self_attn.q_proj.biases"},
               {"llama3-q4-g64", "model.layers.1.self_attn.k_proj.scales"}};
  for (const auto& c : cases) {
    CAPTURE(c.model);
    CAPTURE(c.tensor);
    ModelCopy copy(golden_folder(c.model));
    copy.overwrite(c.tensor, 0, kNanBf16);
    const std::vector<std::string> alone = errors_of(copy, {});
    for (const size_t row : {4, 5}) CHECK(alone[row].starts_with("the logits after 1 token are"));
    for (const size_t row : {0, 1, 2, 3}) {
      CHECK(alone[row].starts_with("the logits after 3 tokens" + kNotNumbers));
    }
    for (const size_t row : {6, 7}) {
      CHECK(alone[row].starts_with("the values of the embedding after 3 tokens" + kNotNumbers));
    }
    CHECK(errors_of(copy, {.shares = {1, 1}}) == alone);
    CHECK(errors_of(copy, {.shares = {1, 1}, .isa = "scalar"}) == alone);
  }
}

TEST_CASE("one token with an infinite logit is enough, on whichever rank") {
  ModelCopy copy(golden_folder("llama3-bf16"));
  for (const int token : {300, 3}) {  // on the last rank, then also on the first
    copy.overwrite("lm_head.weight", static_cast<size_t>(token) * 128 * 2, kInfinityBf16);
    for (const Setup& setup : {Setup{}, Setup{.shares = {1, 1}}, Setup{.shares = {1, 2, 1}}}) {
      const std::vector<std::string> errors = errors_of(copy, setup);
      for (size_t i = 0; i < 6; ++i) CHECK(errors[i].find(kNotNumbers) != std::string::npos);
      for (size_t i = 6; i < 8; ++i) CHECK(errors[i].empty());  // embeddings have no logits
    }
  }
}

TEST_CASE("a table of experts that names one that is not there is refused") {
  const auto error_with = [](size_t at, int64_t expert) {
    ModelCopy copy(golden_folder("deepseekv4-bf16"));
    const std::string bytes(reinterpret_cast<const char*>(&expert), sizeof expert);
    copy.overwrite("layers.1.ffn.gate.tid2eid", at * sizeof expert, bytes);
    return load_error(copy);
  };
  const std::string refusal =
      "the tensor model.layers.1.ffn.gate.tid2eid gives token 2 an expert "
      "that is not one of the 8";
  CHECK(error_with(7, 8) == refusal);  // three of each token
  CHECK(error_with(8, -1) == refusal);
  CHECK(error_with(6, int64_t{1} << 40) == refusal);
  CHECK(error_with(7, 0).empty());  // perhaps twice
}

TEST_CASE("constants of n-grams that lead out of the table are refused") {
  const auto error_with = [](const std::string& tensor, size_t at, int64_t number) {
    ModelCopy copy(golden_folder("qwen4exp-bf16"));
    const std::string bytes(reinterpret_cast<const char*>(&number), sizeof number);
    copy.overwrite("model.language_model.layers.1.ple.ple_embedding." + tensor, at * sizeof number,
                   bytes);
    return load_error(copy);
  };
  CHECK(error_with("ngram_heads_vocab_sizes", 1, 0) ==
        "head 1 of the n-grams has 0 rows from 97 on, the table has 416");
  CHECK(error_with("ngram_heads_offsets", 3, 310) ==
        "head 3 of the n-grams has 107 rows from 310 on, the table has 416");
  CHECK(error_with("ngram_heads_offsets", 0, -1).starts_with("head 0 of the n-grams has 97 rows"));
  CHECK(error_with("layer_multipliers", 2, -3) ==
        "the multiplier -3 of the n-grams is not possible");
  CHECK(error_with("layer_multipliers", 2, 5).empty());  // another seed
}

TEST_CASE("a NaN among 8-bit floats is detected while a checkpoint is read") {
  for (const char* nan : {"\x7f", "\xff"}) {
    ModelCopy copy(golden_folder("ministral3-fp8"));
    copy.overwrite("model.layers.1.mlp.up_proj.weight", 96 * 255 + 95, nan);
    CHECK(load_error(copy) ==
          "model.layers.1.mlp.up_proj.weight: it holds a NaN value, so the "
          "checkpoint is broken");
  }
  ModelCopy expanded(golden_folder("deepseekv3-fp8"));  // one that is used transposed
  expanded.overwrite("model.layers.0.self_attn.kv_b_proj.weight", 17, "\x7f");
  CHECK(load_error(expanded).starts_with("model.layers.0.self_attn.kv_b_proj.weight: it holds"));
  ModelCopy scales(golden_folder("gptoss-mxfp4"));
  scales.overwrite("model.layers.1.mlp.experts.down_proj_scales", 8 * 64 * 4 - 1, "\xff");
  CHECK(load_error(scales).starts_with("model.layers.1.mlp.experts.7.down_proj.weight: it holds"));
}
