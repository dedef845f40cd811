// Positions that are chosen for some tokens of a batch at a time, where all scores would be too
// many.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/isa.h"
#include "model/forward/model.h"
#include "model/load/open_model.h"
#include "support/random_model.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

// The logits of a batch's tokens, with room for sequences of so many pages.
std::vector<float> logits_of(const std::filesystem::path& folder, int pages, int tokens) {
  const auto opened = open_model(folder.string());
  REQUIRE_MESSAGE(opened.ok(), opened.error().message);
  auto device = open_device({.kernels = available_kernels().back()});
  REQUIRE(device.ok());
  std::vector<std::unique_ptr<Link>> links(1);
  Group group({.rank = 0, .links = std::move(links), .kernels = available_kernels().back()});
  const auto model = Model::load({.config = opened.value().config,
                                  .source = opened.value().source,
                                  .shares = {1},
                                  .tokens_max = tokens,
                                  .pages = pages,
                                  .page_list_entries_max = pages},
                                 group, *device.value());
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  Batch batch{.page_lists = {1, 0}};
  for (int i = 0; i < tokens; ++i) {
    batch.tokens.push_back(3 + i * 5 % 90);
    batch.positions.push_back(i);
    batch.list_offsets.push_back(0);
    batch.outputs.push_back(i);
  }
  const auto outputs = model.value()->forward(batch);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return {outputs.value().logits.begin(), outputs.value().logits.end()};
}

}  // namespace

TEST_CASE("scores of a few tokens at a time give the bits of those of all") {
  const TemporaryFolder work;
  const auto folder = work.path() / "model";
  // Scores of 32 MiB for each token, of which most are never touched.
  constexpr int kManyPages = 1 << 17;
  write_random_model("deepseekv32-bf16", {{"max_position_embeddings", kManyPages * kPagePositions}},
                     folder);
  const std::vector<float> all = logits_of(folder, 2, 71);
  const std::vector<float> in_rounds = logits_of(folder, kManyPages, 71);
  CHECK(std::ranges::equal(std::as_bytes(std::span(all)), std::as_bytes(std::span(in_rounds))));
}
