// SequenceState: what the layers keep of one sequence, as the scheduler sees it: numbers of pages,
// which mean the same on every rank. StatePool hands them out; the memory behind them is each
// rank's own (model/model.h). Layers that keep a ring or a recurrent state will add their slots
// here. Used by rank 0's scheduler; one thread.
#pragma once

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

  int free_pages() const { return static_cast<int>(free_.size()); }
  // Memory for the numbers of so many pages: grow() up to there allocates nothing.
  static void reserve(SequenceState& state, int length);
  // Room for positions [0, length). kExhausted, and nothing changed, if the pool has too few pages.
  Status grow(SequenceState& state, int length);
  // Forgets positions from `length` on (a rollback; 0 gives everything back).
  void truncate(SequenceState& state, int length);

 private:
  std::vector<int32_t> free_;  // a stack: pages in use last are used next
};

// Pages for `positions` positions.
int pages_for(int positions);

}  // namespace lockstep
