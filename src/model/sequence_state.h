// SequenceState: what the layers keep of one sequence, as the scheduler sees it: numbers of pages,
// which mean the same on every rank. StatePool hands them out and counts who uses them; the memory
// behind them is each rank's own (model/model.h). Sequences that begin alike may use the same
// pages, which nobody writes any more. Layers that keep a ring or a recurrent state will add their
// slots here. Used by rank 0's scheduler; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace lockstep {

class SequenceState {
 public:
  // Page i holds positions [i * kPagePositions, (i + 1) * kPagePositions).
  std::span<const int32_t> pages() const { return pages_; }

 private:
  friend class StatePool;
  std::vector<int32_t> pages_;
};

class StatePool {
 public:
  explicit StatePool(int pages);

  int pages() const { return static_cast<int>(uses_.size()); }
  int free_pages() const { return static_cast<int>(free_.size()); }
  int use_count(int32_t page) const { return uses_[static_cast<size_t>(page)]; }
  // Memory for the numbers of so many pages: grow() up to there allocates nothing.
  static void reserve(SequenceState& state, int length);
  // Room for positions [0, length). kExhausted, and nothing changed, if the pool has too few pages.
  Status grow(SequenceState& state, int length);
  // Forgets positions from `length` on (a rollback; 0 gives everything back). A page is free once
  // nobody uses it.
  void truncate(SequenceState& state, int length);

  // The next positions of `state` lie in `page`, which others use too: it must be full.
  void share(SequenceState& state, int32_t page);
  // The same for page `index` of `state`, in place of one that holds the same positions.
  void replace(SequenceState& state, size_t index, int32_t page);
  // A use of a page that belongs to no sequence.
  void hold(int32_t page);
  void drop(int32_t page);

 private:
  std::vector<int32_t> free_;  // a stack: pages in use last are used next
  std::vector<int32_t> uses_;  // (pages)
};

// Pages for `positions` positions.
int pages_for(int positions);

}  // namespace lockstep
