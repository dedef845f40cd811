#include "hub/piece_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

using namespace lockstep;

namespace {

std::vector<int> machines(int count) {
  std::vector<int> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Machine i needs the i-th stretch of the pieces.
PieceNeeds stretches(int count, uint32_t pieces) {
  PieceNeeds needs{.machines = machines(count)};
  for (int i = 0; i < count; ++i) {
    std::vector<bool> own(pieces);
    for (uint32_t k = 0; k < pieces; ++k)
      own[k] = static_cast<int>(k) * count / static_cast<int>(pieces) == i;
    needs.needs.push_back(own);
  }
  return needs;
}

}  // namespace

TEST_CASE("every piece has one fetcher, all machines fetch, and a lost one's pieces alone move") {
  constexpr uint32_t kPieces = 4000;
  const auto all = machines(4);
  const std::vector<int> without{0, 1, 3};
  std::map<int, int> counts;
  for (uint32_t piece = 0; piece < kPieces; ++piece) {
    const int fetcher = fetcher_of("hash", piece, all);
    ++counts[fetcher];
    const int after = fetcher_of("hash", piece, without);
    if (fetcher != 2) CHECK(after == fetcher);
    CHECK(after != 2);
    CHECK(fetcher_of("hash", piece, std::vector<int>{3, 1, 0, 2}) == fetcher);
  }
  for (const int machine : all) CHECK(counts[machine] > kPieces / 5);
  CHECK(fetcher_of("hash", 0, {}) == -1);
  CHECK(fetcher_of("hash", 7, std::vector<int>{5}) == 5);
}

TEST_CASE("each piece that is needed is on two disks, and the second copies are spread") {
  for (const int count : {1, 2, 3, 4, 8}) {
    for (const uint32_t pieces : {1u, 7u, 100u}) {
      const PieceNeeds needs = stretches(count, pieces);
      const auto keepers = keepers_of("hash", pieces, needs);
      REQUIRE(keepers.size() == pieces);
      std::map<int, size_t> kept;
      for (uint32_t piece = 0; piece < pieces; ++piece) {
        CHECK(keepers[piece].size() == static_cast<size_t>(std::min(count, 2)));
        CHECK(std::is_sorted(keepers[piece].begin(), keepers[piece].end()));
        CHECK(std::adjacent_find(keepers[piece].begin(), keepers[piece].end()) ==
              keepers[piece].end());
        for (size_t i = 0; i < needs.machines.size(); ++i) {
          const bool keeps =
              std::count(keepers[piece].begin(), keepers[piece].end(), needs.machines[i]) > 0;
          if (needs.needs[i][piece]) CHECK(keeps);
        }
        for (const int machine : keepers[piece]) ++kept[machine];
      }
      const size_t even = 2 * 100 / static_cast<size_t>(count);
      for (const auto& [machine, kept_pieces] : kept) {
        if (pieces == 100 && count > 1) CHECK(kept_pieces <= even + even / 10 + 2);
      }
    }
  }
}

TEST_CASE("what nobody needs is kept by nobody, and what all need by all") {
  PieceNeeds needs{.machines = {2, 5, 9}, .needs = {{true, false}, {true, false}, {true, false}}};
  const auto keepers = keepers_of("hash", 2, needs);
  CHECK(keepers[0] == std::vector<int>{2, 5, 9});
  CHECK(keepers[1].empty());
}
