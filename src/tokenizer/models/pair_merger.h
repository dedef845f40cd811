// PairMerger: the merge loop of byte-pair encoding over token ids, for every kind of BPE. Short
// pieces are scanned; long ones use linked symbols and a queue of candidate pairs, which takes n
// log n time. Immutable.
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
    int32_t rank = kRankByOrder;  // merges with the same rank go from left to right
  };

  // In order of rank: the first is merged first. If a pair occurs twice the last merge counts, as
  // in Hugging Face.
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
