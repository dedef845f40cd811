#include "hub/files/piece_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

using namespace lockstep;

namespace {

std::vector<int> machines(int count) {
  std::vector<int> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

TEST_CASE("every piece has one fetcher, all machines fetch, and only a lost one's pieces move") {
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

namespace {

constexpr uint64_t kBytes = 10;  // per piece

std::vector<bool> some(uint32_t count, const std::function<bool(uint32_t)>& has) {
  std::vector<bool> pieces(count);
  for (uint32_t piece = 0; piece < count; ++piece) pieces[piece] = has(piece);
  return pieces;
}

PieceCut cut_of(uint32_t count) {
  return {.size = count * kBytes, .piece_bytes = kBytes};
}

std::vector<std::vector<int>> deal(uint32_t count, const std::vector<PieceHolder>& holders) {
  return copies_of("hash", cut_of(count), holders);
}

std::map<int, size_t> counts_of(const std::vector<std::vector<int>>& keepers) {
  std::map<int, size_t> counts;
  for (const auto& those : keepers) {
    for (const int machine : those) ++counts[machine];
  }
  return counts;
}

// The machines' pieces after all have carried out the plan.
void carry_out(std::vector<PieceHolder>& holders, const std::vector<std::vector<int>>& keepers) {
  for (PieceHolder& holder : holders) {
    holder.has = some(static_cast<uint32_t>(keepers.size()), [&](uint32_t piece) {
      const auto& those = keepers[piece];
      return std::find(those.begin(), those.end(), holder.machine) != those.end();
    });
  }
}

}  // namespace

TEST_CASE("copies: shares that machines read get a second copy each, evenly") {
  constexpr uint32_t kCount = 120;
  std::vector<PieceHolder> holders;
  for (int i = 0; i < 4; ++i) {
    const auto own = some(kCount, [&](uint32_t k) { return static_cast<int>(k / 30) == i; });
    holders.push_back({.machine = i, .has = own, .needs = own, .room_bytes = 10'000});
  }
  const auto keepers = deal(kCount, holders);
  for (uint32_t piece = 0; piece < kCount; ++piece) {
    CHECK(keepers[piece].size() == 2);
    CHECK(std::count(keepers[piece].begin(), keepers[piece].end(), static_cast<int>(piece / 30)));
  }
  for (const auto& [machine, count] : counts_of(keepers)) CHECK((count >= 54 && count <= 66));

  // Nothing moves once that is done, nor when a machine joins.
  carry_out(holders, keepers);
  CHECK(deal(kCount, holders) == keepers);
  holders.push_back({.machine = 9, .has = {}, .needs = {}, .room_bytes = 10'000});
  CHECK(deal(kCount, holders) == keepers);

  // A machine is lost with its disk: its pieces get a second copy again, the rest stays.
  std::erase_if(holders, [](const PieceHolder& holder) { return holder.machine == 2; });
  const auto after = deal(kCount, holders);
  for (uint32_t piece = 0; piece < kCount; ++piece) {
    CHECK(after[piece].size() == 2);
    for (const int machine : keepers[piece]) {
      if (machine != 2) CHECK(std::count(after[piece].begin(), after[piece].end(), machine) == 1);
    }
  }
  CHECK(counts_of(after)[9] >= 54);  // which had none
}

TEST_CASE("copies: pieces that all machines have stay on two, spread evenly") {
  constexpr uint32_t kCount = 400;
  std::vector<PieceHolder> holders;
  for (int i = 0; i < 4; ++i) {
    holders.push_back({.machine = i, .has = std::vector<bool>(kCount, true), .needs = {}});
  }
  const auto keepers = deal(kCount, holders);
  for (const auto& those : keepers) CHECK(those.size() == 2);
  for (const auto& [machine, count] : counts_of(keepers)) CHECK((count > 150 && count < 250));
  // A machine that needs a piece is preferred to one that does not.
  holders[1].needs = std::vector<bool>(kCount, true);
  CHECK(counts_of(deal(kCount, holders))[1] == kCount);
}

TEST_CASE("copies: although machines see different peers, at least one keeps each piece") {
  constexpr uint32_t kCount = 300;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<PieceHolder> all;
    for (int i = 0; i < 5; ++i) {
      all.push_back({.machine = i, .has = std::vector<bool>(kCount, true), .needs = {}});
    }
    std::vector<std::vector<int>> kept(kCount);
    for (int i = 0; i < 5; ++i) {
      // Machine i does not see one of the others.
      auto seen = all;
      const int unseen = static_cast<int>((seed * 7 + static_cast<unsigned>(i) * 3) % 5);
      std::erase_if(seen, [&](const PieceHolder& holder) {
        return holder.machine == unseen && holder.machine != i;
      });
      const auto keepers = deal(kCount, seen);
      for (uint32_t piece = 0; piece < kCount; ++piece) {
        if (std::count(keepers[piece].begin(), keepers[piece].end(), i)) kept[piece].push_back(i);
      }
    }
    for (const auto& those : kept) CHECK(!those.empty());
  }
}

TEST_CASE("copies: small disks take what fits, and a complete copy counts as one of two") {
  constexpr uint32_t kCount = 100;
  const std::vector<bool> all(kCount, true);
  // Room for 10 pieces on one machine, for 40 on the next, for none on the third.
  std::vector<PieceHolder> holders{{.machine = 0, .has = all, .needs = all, .room_bytes = 0},
                                   {.machine = 1, .has = {}, .needs = {}, .room_bytes = 109},
                                   {.machine = 2, .has = {}, .needs = {}, .room_bytes = 400},
                                   {.machine = 3, .has = {}, .needs = {}, .room_bytes = 9}};
  auto counts = counts_of(deal(kCount, holders));
  CHECK(counts[0] == kCount);
  CHECK(counts[1] == 10);
  CHECK(counts[2] == 40);
  CHECK(counts[3] == 0);
  // A machine that keeps whole files is one of the two copies.
  holders.push_back(
      {.machine = 4, .has = all, .needs = {}, .room_bytes = 0, .takes_copies = false});
  counts = counts_of(deal(kCount, holders));
  CHECK(counts[0] == kCount);
  CHECK(counts[1] + counts[2] + counts[3] == 0);
  CHECK(counts[4] == kCount);
  // With two of them, the machine that reads a piece need not keep it.
  holders.push_back(
      {.machine = 5, .has = all, .needs = {}, .room_bytes = 0, .takes_copies = false});
  CHECK(counts_of(deal(kCount, holders))[0] == 0);
}

TEST_CASE("copies: the edges") {
  CHECK(deal(0, {}).empty());
  CHECK(deal(3, {}) == std::vector<std::vector<int>>(3));
  const std::vector<PieceHolder> alone{
      {.machine = 7, .has = {true, false, true}, .needs = {}, .room_bytes = 1000}};
  CHECK(deal(3, alone) == std::vector<std::vector<int>>(3, {7}));
  // The last piece is shorter, and fits where the others do not.
  const std::vector<PieceHolder> small{
      {.machine = 1, .has = {true, true}, .needs = {}, .room_bytes = 0},
      {.machine = 2, .has = {}, .needs = {}, .room_bytes = 4}};
  const auto keepers = copies_of("hash", {.size = 13, .piece_bytes = 10}, small);
  CHECK(keepers[0] == std::vector<int>{1});
  CHECK(keepers[1] == std::vector<int>{1, 2});
}
