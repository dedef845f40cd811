#include "model/sequence_state.h"

#include <fmt/core.h>

#include "kernels/kernels.h"

namespace lockstep {

int pages_for(int positions) {
  return (positions + kPagePositions - 1) / kPagePositions;
}

StatePool::StatePool(int pages) {
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
    state.pages_.push_back(free_.back());
    free_.pop_back();
  }
  return Ok{};
}

void StatePool::truncate(SequenceState& state, int length) {
  while (static_cast<int>(state.pages_.size()) > pages_for(length)) {
    free_.push_back(state.pages_.back());
    state.pages_.pop_back();
  }
}

}  // namespace lockstep
