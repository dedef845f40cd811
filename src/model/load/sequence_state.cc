#include "model/load/sequence_state.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/kernels.h"

namespace lockstep {

int pages_for(int positions) {
  return (positions + kPagePositions - 1) / kPagePositions;
}

int window_span(int reach) {
  return pages_for(reach) + 1;
}

int first_window_page(int position, int reach) {
  return std::max(0, position + 1 - reach) / kPagePositions;
}

int window_pages_needed(const WindowNeed& need) {
  if (need.reach == 0) return 0;
  const int64_t span = window_span(need.reach);
  const int64_t needed =
      need.sequences * (2 * span + 2) + pages_for(need.tokens_max) + kWindowsSpare * span;
  return static_cast<int>(std::min<int64_t>(needed, need.pages));
}

StatePool::StatePool(int pages) : uses_(static_cast<size_t>(pages), 0) {
  free_.reserve(static_cast<size_t>(pages));
  for (int page = pages - 1; page >= 0; --page) free_.push_back(page);
}

void StatePool::reserve(SequenceState& state, int length) {
  state.pages_.reserve(static_cast<size_t>(pages_for(length)));
}

Status StatePool::grow(SequenceState& state, int length) {
  const int missing = pages_for(length) - static_cast<int>(state.pages_.size());
  if (missing > free_pages()) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the sequence needs {} more pages of {} positions, {} are free",
                             missing, kPagePositions, free_pages())};
  }
  for (int i = 0; i < missing; ++i) {
    const int32_t page = free_.back();
    free_.pop_back();
    uses_[static_cast<size_t>(page)] = 1;
    state.pages_.push_back(page);
  }
  return Ok{};
}

void StatePool::truncate(SequenceState& state, int length) {
  while (static_cast<int>(state.pages_.size()) > pages_for(length)) {
    drop(state.pages_.back());
    state.pages_.pop_back();
  }
}

void StatePool::share(SequenceState& state, int32_t page) {
  hold(page);
  state.pages_.push_back(page);
}

void StatePool::replace(SequenceState& state, size_t index, int32_t page) {
  hold(page);
  drop(state.pages_[index]);
  state.pages_[index] = page;
}

void StatePool::hold(int32_t page) {
  LOCKSTEP_CHECK(use_count(page) > 0);  // a free page holds nothing
  ++uses_[static_cast<size_t>(page)];
}

void StatePool::drop(int32_t page) {
  LOCKSTEP_CHECK(use_count(page) > 0);
  if (--uses_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

}  // namespace lockstep
