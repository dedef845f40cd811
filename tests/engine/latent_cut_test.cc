// The projections to the latents cut over ranks: the same bits as whole, one more exchange a layer,
// and less to read.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "model/model.h"
#include "model/open_model.h"
#include "support/golden.h"
#include "support/rank_threads.h"

using namespace lockstep;

namespace {

struct Variant {
  std::string name;
  Setup setup;
  int chunk = 0;
};

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

// How often the host of one of `ranks` ranks waits for its device in a pass over three tokens.
std::vector<uint64_t> waits_of_a_pass(int ranks, LatentCut latent_cut) {
  const auto opened = open_model(golden_folder("deepseekv3-bf16"));
  REQUIRE(opened.ok());
  auto links = open_local_links({.kind = LinkKind::kShm}, ranks);
  REQUIRE(links.ok());
  std::vector<uint64_t> waits(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < waits.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Group group({.rank = static_cast<int>(rank), .links = std::move(links.value()[rank])});
      auto device = open_device({.kernels = available_kernels().back()});
      auto model = Model::load({.config = opened.value().config,
                                .source = opened.value().source,
                                .shares = std::vector<double>(waits.size(), 1.0),
                                .tokens_max = 8,
                                .pages = 2,
                                .page_list_entries_max = 2,
                                .latent_cut = latent_cut},
                               group, *device.value());
      if (!model.ok()) return;
      const uint64_t before = device.value()->wait_count();
      const auto outputs = model.value()->forward({.tokens = {1, 2, 3},
                                                   .positions = {0, 1, 2},
                                                   .list_offsets = {0, 0, 0},
                                                   .page_lists = {1},
                                                   .outputs = {2}});
      if (outputs.ok()) waits[rank] = device.value()->wait_count() - before;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return waits;
}

}  // namespace

TEST_CASE("projections to the latents that are cut give the bits of whole ones") {
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

TEST_CASE("a batch of several sequences goes through cut projections as each does alone") {
  const std::string folder = golden_folder("deepseekv3-q4-g64");
  const std::vector<int32_t> prompt = read_golden(folder).prompt;
  const GenerateRequest first{.prompt = prompt, .max_tokens = 8, .prompt_logits = true};
  const GenerateRequest second{.prompt = {prompt.rbegin(), prompt.rbegin() + 3}, .max_tokens = 12};
  const Setup cut{.shares = {2, 1}, .latent_cut = LatentCut::kAlways};
  const Answer alone = run_ranks(folder, {}, {first}).answers[0];
  CHECK(same_bits(run_ranks(folder, cut, {second, first, second}).answers[1], alone));
}

TEST_CASE("cut projections cost one exchange a layer, and one rank has none to cut") {
  constexpr uint64_t kLayers = 3;
  for (const uint64_t waits : waits_of_a_pass(2, LatentCut::kAlways)) {
    CHECK(waits == 3 * kLayers + 2);
  }
  for (const uint64_t waits : waits_of_a_pass(2, LatentCut::kNever)) {
    CHECK(waits == 2 * kLayers + 2);
  }
  CHECK(waits_of_a_pass(1, LatentCut::kAlways)[0] == 2 * kLayers + 2);
}

TEST_CASE("all ranks together read cut projections once; a tiny model's are not worth it") {
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
