// Prompts whose sums travel while the other half of the tokens is computed: the same bits as
// without, and one more exchange for each sum.
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

// How often the host of one of `ranks` ranks waits for its device in a pass over `tokens` tokens.
std::vector<uint64_t> waits_of_a_pass(int ranks, int tokens, Overlap overlap) {
  const auto opened = open_model(golden_folder("llama-f32"));
  REQUIRE(opened.ok());
  auto links = open_local_links({.kind = LinkKind::kShm}, ranks);
  REQUIRE(links.ok());
  std::vector<uint64_t> waits(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  Batch batch{.page_lists = {1, 0, 2, 3, 4, 5}, .outputs = {0}};
  for (int i = 0; i < tokens; ++i) {
    batch.tokens.push_back(i % 7);
    batch.positions.push_back(i);
    batch.list_offsets.push_back(0);
  }
  for (size_t rank = 0; rank < waits.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Group group({.rank = static_cast<int>(rank), .links = std::move(links.value()[rank])});
      auto device = open_device({.kernels = available_kernels().back()});
      auto model = Model::load({.config = opened.value().config,
                                .source = opened.value().source,
                                .shares = std::vector<double>(waits.size(), 1.0),
                                .tokens_max = 256,
                                .pages = 6,
                                .page_list_entries_max = 6,
                                .overlap = overlap},
                               group, *device.value());
      if (!model.ok()) return;
      const uint64_t before = device.value()->wait_count();
      if (!model.value()->forward(batch).ok()) return;
      waits[rank] = device.value()->wait_count() - before;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return waits;
}

}  // namespace

TEST_CASE("sums that travel while the other half is computed give the same bits") {
  for (const char* name : {"llama3-bf16-long", "qwen3-q4-g64", "qwen2-bf16", "qwen3moe-q8-g32",
                           "ministral3-bf16-l4scale", "deepseekv3-bf16", "gptoss-mxfp4"}) {
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

TEST_CASE("a batch of several sequences in halves gives each what it gets alone") {
  const std::string folder = golden_folder("qwen3moe-q4-g64");
  const std::vector<int32_t> prompt = read_golden(folder).prompt;
  const GenerateRequest first{.prompt = prompt, .max_tokens = 8, .prompt_logits = true};
  const GenerateRequest second{.prompt = {prompt.rbegin(), prompt.rbegin() + 3}, .max_tokens = 12};
  const Setup halves{.shares = {2, 1}, .overlap = Overlap::kAlways};
  const Answer alone = run_ranks(folder, {}, {first}).answers[0];
  CHECK(same_bits(run_ranks(folder, halves, {second, first, second}).answers[1], alone));
}

TEST_CASE("only long batches of several ranks go in halves unless told otherwise") {
  const auto layers =
      static_cast<uint64_t>(open_model(golden_folder("llama-f32")).value().config.layers);
  const auto check = [&](int ranks, int tokens, Overlap overlap, uint64_t exchanges_a_layer) {
    CAPTURE(ranks);
    CAPTURE(tokens);
    for (const uint64_t waits : waits_of_a_pass(ranks, tokens, overlap)) {
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
