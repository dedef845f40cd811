// PairMerger: byte-pair encoding's merge loop over token ids, for every kind of BPE. In n log n
// time: linked symbols and a queue of candidate pairs. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

class PairMerger {
 public:
  struct Merge {
    int32_t left;
    int32_t right;
    int32_t result;
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

  size_t slot_of(uint64_t pair) const;
  const Slot* find(int32_t left, int32_t right) const;

  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
};

}  // namespace lockstep
