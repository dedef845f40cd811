// PairMerger: byte-pair encoding's merge loop over token ids, for every kind of BPE. Short pieces
// are searched from end to end, long ones have linked symbols and a queue of candidate pairs, which
// takes n log n time. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

class PairMerger {
 public:
  static constexpr int32_t kRankByOrder = -1;

  struct Merge {
    int32_t left;
    int32_t right;
    int32_t result;
    int32_t rank = kRankByOrder;  // merges with the same rank are made from left to right
  };

  // In order of rank: the first is merged first. Of merges with the same pair the last counts, as
  // with Hugging Face.
  explicit PairMerger(const std::vector<Merge>& merges);

  // Merges neighbours in `symbols` until none are left: lowest rank first, leftmost first among
  // equals.
  void merge(std::vector<int32_t>& symbols) const;

 private:
  struct Slot {
    uint64_t pair;
    int32_t rank;  // -1: free
    int32_t result;
  };

  void merge_short(std::vector<int32_t>& symbols) const;
  void merge_long(std::vector<int32_t>& symbols) const;
  size_t slot_of(uint64_t pair) const;
  const Slot* find(int32_t left, int32_t right) const;

  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
};

}  // namespace lockstep
