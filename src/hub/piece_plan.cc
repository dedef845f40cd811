#include "hub/piece_plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "base/check.h"
#include "base/hasher.h"

namespace lockstep {
namespace {

constexpr size_t kCopies = 2;

uint64_t weight_of(std::string_view file_hash, uint32_t piece, int machine) {
  std::string text(file_hash);
  for (const uint32_t number : {piece, static_cast<uint32_t>(machine)}) {
    for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(number >> shift & 255);
  }
  const Digest digest = sha256(std::as_bytes(std::span(text)));
  uint64_t weight = 0;
  for (int i = 0; i < 8; ++i) weight = weight << 8 | std::to_integer<uint64_t>(digest[i]);
  return weight;
}

}  // namespace

int fetcher_of(std::string_view file_hash, uint32_t piece, std::span<const int> candidates) {
  int best = -1;
  uint64_t best_weight = 0;
  for (const int machine : candidates) {
    const uint64_t weight = weight_of(file_hash, piece, machine);
    if (best >= 0 && (weight < best_weight || (weight == best_weight && machine > best))) continue;
    best = machine;
    best_weight = weight;
  }
  return best;
}

std::vector<std::vector<int>> keepers_of(std::string_view file_hash, uint32_t piece_count,
                                         const PieceNeeds& needs) {
  LOCKSTEP_CHECK(needs.machines.size() == needs.needs.size());
  std::vector<std::vector<int>> keepers(piece_count);
  std::map<int, size_t> kept;  // pieces of each machine
  for (const int machine : needs.machines) kept[machine] = 0;
  for (size_t i = 0; i < needs.machines.size(); ++i) {
    LOCKSTEP_CHECK(needs.needs[i].size() == piece_count);
    for (uint32_t piece = 0; piece < piece_count; ++piece) {
      if (!needs.needs[i][piece]) continue;
      keepers[piece].push_back(needs.machines[i]);
      ++kept[needs.machines[i]];
    }
  }
  for (uint32_t piece = 0; piece < piece_count; ++piece) {
    auto& those = keepers[piece];
    while (!those.empty() && those.size() < std::min(kCopies, needs.machines.size())) {
      size_t fewest = SIZE_MAX;
      std::vector<int> candidates;
      for (const auto& [machine, count] : kept) {
        if (std::find(those.begin(), those.end(), machine) != those.end() || count > fewest)
          continue;
        if (count < fewest) candidates.clear();
        fewest = count;
        candidates.push_back(machine);
      }
      those.push_back(fetcher_of(file_hash, piece, candidates));
      ++kept[those.back()];
    }
    std::sort(those.begin(), those.end());
  }
  return keepers;
}

}  // namespace lockstep
