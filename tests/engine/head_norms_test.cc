// Norms over heads that several ranks have: one more exchange per layer, in which each rank counts
// its heads, however key/value heads are replicated.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/variant.h"
#include "engine/waits_of_a_pass.h"
#include "support/golden.h"
#include "support/rank_threads.h"

using namespace lockstep;

namespace {

uint64_t waits_of_joined_heads(int ranks) {
  return waits_of_a_pass("minimaxm2-bf16", ranks,
                         {.tokens_max = 8, .pages = 2, .page_list_entries_max = 2},
                         {.tokens = {1, 2, 3},
                          .positions = {0, 1, 2},
                          .list_offsets = {0, 0, 0},
                          .page_lists = {1},
                          .outputs = {2}})[0];
}

}  // namespace

TEST_CASE("norms over all heads cost several ranks an exchange per layer, and one rank none") {
  constexpr uint64_t kLayers = 2;
  CHECK(waits_of_joined_heads(1) == 2 * kLayers + 2);
  CHECK(waits_of_joined_heads(2) == 3 * kLayers + 2);
  CHECK(waits_of_joined_heads(3) == 3 * kLayers + 2);
}

TEST_CASE("norms over all heads have the same bits on ranks without heads and in long batches") {
  const std::string folder = golden_folder("minimaxm2-bf16");
  GenerateRequest request{.prompt = read_golden(folder).prompt, .max_tokens = 8};
  request.prompt_logits = true;
  const Answer alone = run_ranks(folder, {}, {request}).answers[0];
  REQUIRE(alone.error.empty());
  const Variant variants[] = {
      {"11 ranks for 6 heads", {.shares = std::vector<double>(11, 1.0)}},
      {"shares 1:100", {.shares = {1, 100}}},
      {"a wish for halves", {.shares = {1, 1}, .overlap = Overlap::kAlways}}};
  for (const Variant& variant : variants) {
    CHECK_MESSAGE(same_bits(run_ranks(folder, variant.setup, {request}).answers[0], alone),
                  variant.name);
  }
}
