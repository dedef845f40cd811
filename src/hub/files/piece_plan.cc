#include "hub/files/piece_plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "base/byte_text.h"
#include "base/check.h"
#include "base/crypto/hasher.h"

namespace lockstep {
namespace {

constexpr size_t kCopies = 2;

uint64_t weight_of(std::string_view file_hash, uint32_t piece, int machine) {
  std::string text(file_hash);
  for (const uint32_t number : {piece, static_cast<uint32_t>(machine)}) {
    for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(number >> shift & 255);
  }
  const Digest digest = sha256(bytes_of(text));
  uint64_t weight = 0;
  for (int i = 0; i < 8; ++i) weight = weight << 8 | std::to_integer<uint64_t>(digest[i]);
  return weight;
}

bool is_set(const std::vector<bool>& pieces, uint32_t piece) {
  return piece < pieces.size() && pieces[piece];
}

// The state of a machine while copies_of() assigns pieces.
struct Dealt {
  const PieceHolder& holder;
  uint64_t kept = 0;  // bytes of the file
  uint64_t room = 0;
};

// The first two holders of the piece, in the order of copies_of().
std::vector<int> holders_that_stay(std::string_view file_hash, uint32_t piece,
                                   std::span<const PieceHolder> holders) {
  struct Candidate {
    bool keeps_anyway, needs;
    uint64_t weight;
    int machine;
  };
  std::vector<Candidate> candidates;
  for (const PieceHolder& holder : holders) {
    if (!is_set(holder.has, piece)) continue;
    candidates.push_back({!holder.takes_copies, is_set(holder.needs, piece),
                          weight_of(file_hash, piece, holder.machine), holder.machine});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.keeps_anyway != b.keeps_anyway) return a.keeps_anyway;
    if (a.needs != b.needs) return a.needs;
    return a.weight != b.weight ? a.weight > b.weight : a.machine < b.machine;
  });
  std::vector<int> machines;
  for (const Candidate& candidate : candidates) {
    if (machines.size() < kCopies) machines.push_back(candidate.machine);
  }
  return machines;
}

// Null if no other machine has room for the piece.
Dealt* next_keeper(std::string_view file_hash, uint32_t piece, uint64_t bytes,
                   std::span<Dealt> machines, const std::vector<int>& keepers) {
  Dealt* best = nullptr;
  uint64_t best_weight = 0;
  for (Dealt& machine : machines) {
    const PieceHolder& holder = machine.holder;
    const bool is_keeper =
        std::find(keepers.begin(), keepers.end(), holder.machine) != keepers.end();
    if (is_keeper || !holder.takes_copies || machine.room < bytes) continue;
    const uint64_t weight = weight_of(file_hash, piece, holder.machine);
    const auto is_better = [&] {
      const bool needs = is_set(holder.needs, piece),
                 best_needs = is_set(best->holder.needs, piece);
      if (needs != best_needs) return needs;
      if (machine.kept != best->kept) return machine.kept < best->kept;
      return weight > best_weight;
    };
    if (best && !is_better()) continue;
    best = &machine;
    best_weight = weight;
  }
  return best;
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

std::vector<std::vector<int>> copies_of(std::string_view file_hash, PieceCut cut,
                                        std::span<const PieceHolder> holders) {
  std::vector<std::vector<int>> keepers(cut.count());
  std::vector<Dealt> machines;
  for (const PieceHolder& holder : holders) {
    machines.push_back({.holder = holder, .room = holder.room_bytes});
  }
  for (uint32_t piece = 0; piece < cut.count(); ++piece) {
    keepers[piece] = holders_that_stay(file_hash, piece, holders);
    for (Dealt& machine : machines) {
      const auto& those = keepers[piece];
      const bool keeps =
          std::find(those.begin(), those.end(), machine.holder.machine) != those.end();
      if (keeps) machine.kept += cut.range(piece).size();
    }
  }
  for (uint32_t piece = 0; piece < cut.count(); ++piece) {
    auto& those = keepers[piece];
    const uint64_t bytes = cut.range(piece).size();
    while (those.size() < kCopies) {
      Dealt* keeper = next_keeper(file_hash, piece, bytes, machines, those);
      if (!keeper) break;
      keeper->kept += bytes;
      keeper->room -= bytes;
      those.push_back(keeper->holder.machine);
    }
    std::sort(those.begin(), those.end());
  }
  return keepers;
}

}  // namespace lockstep
