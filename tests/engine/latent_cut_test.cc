// The projections to the latents split over ranks: the same bits as unsplit, one more exchange per
// layer, and less to read.
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

std::vector<Variant> cut_variants() {
  const auto equal = [](size_t ranks) { return std::vector<double>(ranks, 1.0); };
  std::vector<Variant> all{
      {"2 ranks", {.shares = equal(2)}},
      {"3 ranks", {.shares = equal(3)}},
      {"4 ranks", {.shares = equal(4)}},
      {"8 ranks", {.shares = equal(8)}},
      {"11 ranks, of which two have no rows", {.shares = equal(11)}},
      {"shares 3:1", {.shares = {3, 1}}},
      {"shares 2:1:1", {.shares = {2, 1, 1}}},
      {"shares 1:100, of which the first has no rows", {.shares = {1, 100}}},
      {"3 ranks over tcp", {.shares = equal(3), .link = LinkKind::kTcp}},
      {"3 ranks with 2 threads", {.shares = equal(3), .threads = 2}},
      {"2 ranks, chunks of 1", {.shares = equal(2)}, 1},
      {"3 ranks, chunks of 7", {.shares = equal(3)}, 7},
      {"test device", {.shares = {3, 1}, .device = "delayed"}},
      {"test device, 4 ranks, chunks of 7", {.shares = equal(4), .device = "delayed"}, 7},
      {"scalar", {.shares = {1, 2, 1}, .isa = "scalar"}},
  };
  for (Variant& variant : all) variant.setup.latent_cut = LatentCut::kAlways;
  return all;
}

// How often the host of each of `ranks` ranks waits for its device in a pass over three tokens.
std::vector<uint64_t> waits_with_cut(int ranks, LatentCut latent_cut) {
  return waits_of_a_pass(
      "deepseekv3-bf16", ranks,
      {.tokens_max = 8, .pages = 2, .page_list_entries_max = 2, .latent_cut = latent_cut},
      {.tokens = {1, 2, 3},
       .positions = {0, 1, 2},
       .list_offsets = {0, 0, 0},
       .page_lists = {1},
       .outputs = {2}});
}

}  // namespace

TEST_CASE("split projections to the latents give the bits of whole ones") {
  for (const char* name :
       {"deepseekv3-bf16", "deepseekv3-q4-g64", "kimik2-q8-g32", "deepseekv3-fp8"}) {
    const std::string folder = golden_folder(name);
    GenerateRequest request{.prompt = read_golden(folder).prompt, .max_tokens = 8};
    request.prompt_logits = true;
    for (const bool exact : {false, true}) {
      const Setup whole{.exact = exact, .latent_cut = LatentCut::kNever};
      const Answer reference = run_ranks(folder, whole, {request}).answers[0];
      REQUIRE(reference.logits.size() == request.prompt.size());
      for (Variant& variant : cut_variants()) {
        CAPTURE(name);
        variant.setup.exact = exact;
        request.chunk = variant.chunk;
        const Outcome outcome = run_ranks(folder, variant.setup, {request});
        CHECK_MESSAGE(same_bits(outcome.answers[0], reference), variant.name);
      }
      request.chunk = 0;
    }
  }
}

TEST_CASE("each sequence of a batch gets from split projections what it gets alone") {
  const std::string folder = golden_folder("deepseekv3-q4-g64");
  const std::vector<int32_t> prompt = read_golden(folder).prompt;
  const GenerateRequest first{.prompt = prompt, .max_tokens = 8, .prompt_logits = true};
  const GenerateRequest second{.prompt = {prompt.rbegin(), prompt.rbegin() + 3}, .max_tokens = 12};
  const Setup cut{.shares = {2, 1}, .latent_cut = LatentCut::kAlways};
  const Answer alone = run_ranks(folder, {}, {first}).answers[0];
  CHECK(same_bits(run_ranks(folder, cut, {second, first, second}).answers[1], alone));
}

TEST_CASE("split projections cost one exchange per layer, and a single rank splits none") {
  constexpr uint64_t kLayers = 3;
  for (const uint64_t waits : waits_with_cut(2, LatentCut::kAlways)) {
    CHECK(waits == 3 * kLayers + 2);
  }
  for (const uint64_t waits : waits_with_cut(2, LatentCut::kNever)) {
    CHECK(waits == 2 * kLayers + 2);
  }
  CHECK(waits_with_cut(1, LatentCut::kAlways)[0] == 2 * kLayers + 2);
}

TEST_CASE("ranks together read split projections once; a tiny model's are not split") {
  const std::string folder = golden_folder("deepseekv3-bf16");
  const auto bytes_of_all = [&](LatentCut latent_cut) {
    uint64_t bytes = 0;
    for (const LoadReport& report :
         run_ranks(folder, {.shares = {1, 1, 1}, .latent_cut = latent_cut},
                   {{.prompt = {1}, .max_tokens = 1}})
             .reports) {
      CHECK(report.weight_bytes == report.read_bytes);
      bytes += report.weight_bytes;
    }
    return bytes;
  };
  const uint64_t latent_bytes = 3 * uint64_t{64 + 64 + 16} * 64 * 2;  // three layers, bfloat16
  const uint64_t whole = bytes_of_all(LatentCut::kNever);
  CHECK(whole - bytes_of_all(LatentCut::kAlways) == 2 * latent_bytes);
  CHECK(bytes_of_all(LatentCut::kAuto) == whole);
}
