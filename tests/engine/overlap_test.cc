// Prompts whose sums are in flight while the other half of the tokens is computed: the same bits as
// without overlap, and one more exchange per sum.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "engine/variant.h"
#include "engine/waits_of_a_pass.h"
#include "model/forward/model.h"
#include "model/load/open_model.h"
#include "support/golden.h"
#include "support/rank_threads.h"

using namespace lockstep;

namespace {

std::vector<Variant> overlapping_variants() {
  const auto equal = [](size_t ranks) { return std::vector<double>(ranks, 1.0); };
  std::vector<Variant> all{
      {"2 ranks", {.shares = equal(2)}},
      {"3 ranks", {.shares = equal(3)}},
      {"4 ranks over tcp", {.shares = equal(4), .link = LinkKind::kTcp}},
      {"shares 3:1 over tcp", {.shares = {3, 1}, .link = LinkKind::kTcp}},
      {"3 ranks in a line", {.shares = equal(3), .topology = Topology::kLine}},
      {"8 ranks", {.shares = equal(8)}},
      {"2 ranks with 2 threads", {.shares = equal(2), .threads = 2}},
      {"2 ranks, chunks of 2", {.shares = equal(2)}, 2},
      {"3 ranks, chunks of 7", {.shares = equal(3)}, 7},
      {"2 stages of 2 ranks", {.shares = {3, 1, 1, 2}, .stages = 2}, 7},
      {"test device", {.shares = {3, 1}, .device = "delayed"}},
      {"test device, 3 ranks, chunks of 7", {.shares = equal(3), .device = "delayed"}, 7},
      {"scalar", {.shares = {1, 2, 1}, .isa = "scalar"}},
  };
  for (Variant& variant : all) variant.setup.overlap = Overlap::kAlways;
  return all;
}

// How often the host of each of `ranks` ranks waits for its device in a pass over `tokens` tokens.
std::vector<uint64_t> waits_with_overlap(int ranks, int tokens, Overlap overlap) {
  Batch batch{.page_lists = {1, 0, 2, 3, 4, 5}, .outputs = {0}};
  for (int i = 0; i < tokens; ++i) {
    batch.tokens.push_back(i % 7);
    batch.positions.push_back(i);
    batch.list_offsets.push_back(0);
  }
  return waits_of_a_pass(
      "llama-f32", ranks,
      {.tokens_max = 256, .pages = 6, .page_list_entries_max = 6, .overlap = overlap}, batch);
}

}  // namespace

TEST_CASE("sums that overlap with computing the other half give the same bits") {
  for (const char* name :
       {"llama3-bf16-long", "qwen3-q4-g64", "qwen2-bf16", "qwen3moe-q8-g32",
        "ministral3-bf16-l4scale", "deepseekv3-bf16", "gptoss-mxfp4", "gemma4-dense-bf16",
        "gemma4-moe-q4-g64", "gemma4-e-bf16", "qwen35-bf16", "glmdsa-shared-bf16", "glm5next-bf16",
        "deepseekv4-bf16", "qwen4exp-bf16"}) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    GenerateRequest request{.prompt = read_golden(folder).prompt, .max_tokens = 4};
    request.prompt_logits = true;
    const Setup waiting{.overlap = Overlap::kNever};
    const Answer reference = run_ranks(folder, waiting, {request}).answers[0];
    REQUIRE(reference.logits.size() == request.prompt.size());
    for (const Variant& variant : overlapping_variants()) {
      request.chunk = variant.chunk;
      const Outcome outcome = run_ranks(folder, variant.setup, {request});
      CHECK_MESSAGE(same_bits(outcome.answers[0], reference), variant.name);
    }
  }
}

TEST_CASE("each sequence of a batch in halves gets what it gets alone") {
  const std::string folder = golden_folder("qwen3moe-q4-g64");
  const std::vector<int32_t> prompt = read_golden(folder).prompt;
  const GenerateRequest first{.prompt = prompt, .max_tokens = 8, .prompt_logits = true};
  const GenerateRequest second{.prompt = {prompt.rbegin(), prompt.rbegin() + 3}, .max_tokens = 12};
  const Setup halves{.shares = {2, 1}, .overlap = Overlap::kAlways};
  const Answer alone = run_ranks(folder, {}, {first}).answers[0];
  CHECK(same_bits(run_ranks(folder, halves, {second, first, second}).answers[1], alone));
}

TEST_CASE("by default only long batches on several ranks are split into halves") {
  const auto layers =
      static_cast<uint64_t>(open_model(golden_folder("llama-f32")).value().config.layers);
  const auto check = [&](int ranks, int tokens, Overlap overlap, uint64_t exchanges_a_layer) {
    CAPTURE(ranks);
    CAPTURE(tokens);
    for (const uint64_t waits : waits_with_overlap(ranks, tokens, overlap)) {
      CHECK(waits == exchanges_a_layer * layers + 2);
    }
  };
  check(2, 256, Overlap::kAuto, 4);
  check(2, 255, Overlap::kAuto, 2);
  check(2, 256, Overlap::kNever, 2);
  check(2, 2, Overlap::kAlways, 4);
  check(2, 1, Overlap::kAlways, 2);
  check(1, 256, Overlap::kAlways, 2);
}
