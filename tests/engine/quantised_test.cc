#include <cmath>
#include <filesystem>
#include <numeric>

#include "model/quantise/quantise_model.h"
#include "support/golden.h"
#include "support/random_model.h"
#include "support/rank_threads.h"
#include "support/temporary_folder.h"
#include "weights/safetensors/checkpoint.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

Answer answer_to_counting(const std::string& model, const Setup& setup) {
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
  for (const char* name :
       {"llama3-bf16", "qwen3moe-bf16", "deepseekv3-bf16", "glm4moe-bf16", "minimaxm2-bf16",
        "gemma4-moe-bf16", "gemma4-e-bf16", "qwen3next-bf16", "qwen35moe-bf16", "kimilinear-bf16",
        "glmdsa-shared-bf16", "glm5next-bf16", "deepseekv4-bf16", "qwen4exp-bf16"}) {
    CAPTURE(name);
    const TemporaryFolder work;
    const fs::path folder = work.path() / "quantised";
    quantise(golden_folder(name), folder, 4);
    const Answer wanted = answer_to_counting(folder.string(), {});
    REQUIRE(wanted.logits.size() == 24);
    CHECK(wanted.logits != answer_to_counting(golden_folder(name), {}).logits);
    for (const std::vector<double>& shares : {std::vector<double>{1}, {1, 1, 1}, {3, 1}}) {
      Setup setup;
      setup.shares = shares;
      setup.threads = 2;
      const Answer folder_answer = answer_to_counting(folder.string(), setup);
      setup.bits = 4;
      const Answer load_answer = answer_to_counting(golden_folder(name), setup);
      CHECK(folder_answer.logits == wanted.logits);
      CHECK(load_answer.logits == wanted.logits);
      CHECK(load_answer.tokens == wanted.tokens);
    }
  }
}

TEST_CASE("quantising on load to any number of bits gives what the folder gives") {
  for (const int bits : {2, 3, 5, 6, 8}) {
    CAPTURE(bits);
    const TemporaryFolder work;
    quantise(golden_folder("llama3-bf16"), work.path() / "quantised", bits);
    Setup setup;
    const Answer wanted = answer_to_counting((work.path() / "quantised").string(), setup);
    setup.bits = bits;
    CHECK(answer_to_counting(golden_folder("llama3-bf16"), setup).logits == wanted.logits);
  }
}

TEST_CASE("the loss of quantising on load is reported per tensor, as the folder's maker does") {
  for (const char* name : {"llama3-bf16", "qwen3moe-bf16", "deepseekv3-bf16", "qwen3-bf16-tied"}) {
    CAPTURE(name);
    const TemporaryFolder work;
    const auto made = quantise_model(
        {.from = golden_folder(name), .to = work.path() / "quantised", .bits = 4, .threads = 2});
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    for (const std::vector<double>& shares : {std::vector<double>{1}, {1, 1}, {3, 1}}) {
      Setup setup;
      setup.shares = shares;
      setup.bits = 4;
      const Outcome outcome =
          run_ranks(golden_folder(name), setup, {{.prompt = {1}, .max_tokens = 1}});
      QuantisationReport all;
      for (const LoadReport& report : outcome.reports) all.add(report.quantised);
      size_t quantised = 0;
      for (const QuantisedTensor& wanted : made.value().tensors) {
        const auto found =
            std::find_if(all.tensors().begin(), all.tensors().end(),
                         [&](const TensorError& tensor) { return tensor.name == wanted.name; });
        CAPTURE(wanted.name);
        CHECK((found != all.tensors().end()) == (wanted.bits > 0));
        if (found == all.tensors().end()) continue;
        ++quantised;
        CHECK(found->bits == wanted.bits);
        CHECK(found->error.largest == static_cast<float>(wanted.largest_error));
        // Sums in another order; ranks that share a group or a whole matrix count it twice.
        const double slack = shares.size() == 1 ? 1e-12 : 0.02;
        CHECK(found->error.relative_rms() == doctest::Approx(wanted.relative_rms).epsilon(slack));
        if (shares.size() == 1) CHECK(found->weights == wanted.weights);
        if (shares.size() > 1) CHECK(found->weights >= wanted.weights);
      }
      CHECK(quantised == all.tensors().size());
    }
    const Outcome plain = run_ranks(golden_folder(name), {}, {{.prompt = {1}, .max_tokens = 1}});
    CHECK(plain.reports[0].quantised.empty());
  }
}

TEST_CASE("latent heads of whole groups are quantised as two matrices, on load and in the folder") {
  const TemporaryFolder work;
  const fs::path model = work.path() / "model", folder = work.path() / "quantised";
  // Dense layers only: a different choice of experts would hide the effect of the heads.
  write_random_model("deepseekv3-bf16",
                     {{"qk_nope_head_dim", 64}, {"v_head_dim", 64}, {"first_k_dense_replace", 8}},
                     model);
  quantise(model.string(), folder, 8);
  const auto checkpoint = Checkpoint::open(folder);
  REQUIRE(checkpoint.ok());
  CHECK(checkpoint.value()->has("model.layers.0.self_attn.embed_q.scales"));
  CHECK(checkpoint.value()->has("model.layers.0.self_attn.unembed_out.scales"));
  CHECK_FALSE(checkpoint.value()->has("model.layers.0.self_attn.kv_b_proj.weight"));

  const Answer wanted = answer_to_counting(folder.string(), {});
  Setup exact;
  exact.exact = true;
  const Answer plain = answer_to_counting(model.string(), exact);
  const Answer rounded = answer_to_counting(folder.string(), exact);
  double difference = 0, size = 0;
  for (size_t i = 0; i < plain.logits.size(); ++i) {
    for (size_t k = 0; k < plain.logits[i].size(); ++k) {
      difference += std::pow(double{plain.logits[i][k]} - rounded.logits[i][k], 2);
      size += std::pow(double{plain.logits[i][k]}, 2);
    }
  }
  CHECK(std::sqrt(difference / size) < 0.04);  // 8-bit weights: 0.022
  for (const std::vector<double>& shares : {std::vector<double>{1}, {1, 1, 1}}) {
    Setup setup;
    setup.shares = shares;
    CHECK(answer_to_counting(folder.string(), setup).logits == wanted.logits);
    setup.bits = 8;
    CHECK(answer_to_counting(model.string(), setup).logits == wanted.logits);
  }
}
