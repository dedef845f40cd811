#include "engine/pages/state_cache.h"

#include <algorithm>

#include "base/check.h"
#include "model/load/sequence_state.h"

namespace lockstep {

StateCache::StateCache(int states, int sequences, int pages) {
  if (states == 0) return;
  LOCKSTEP_CHECK(states >= states_needed(sequences));
  uses_.resize(static_cast<size_t>(states), 0);
  pages_of_states_.resize(uses_.size(), kNone);
  last_uses_.resize(uses_.size(), 0);
  states_of_pages_.resize(static_cast<size_t>(pages), kNone);
  free_.reserve(uses_.size());
  for (int32_t state = states; state-- > 0;) free_.push_back(state);
  lent_max_ = states - kStatesOfSequence * sequences;
}

int32_t StateCache::take() {
  LOCKSTEP_CHECK(!free_.empty());
  const int32_t state = free_.back();
  free_.pop_back();
  uses_[static_cast<size_t>(state)] = 1;
  return state;
}

// Rare, and there are few states.
int32_t StateCache::oldest_snapshot() const {
  int32_t oldest = kNone;
  for (size_t state = 0; state < uses_.size(); ++state) {
    if (pages_of_states_[state] == kNone || uses_[state] > 1) continue;
    if (oldest != kNone && last_uses_[static_cast<size_t>(oldest)] <= last_uses_[state]) continue;
    oldest = static_cast<int32_t>(state);
  }
  LOCKSTEP_CHECK(oldest != kNone);  // the running sequences need fewer than there are
  return page_of(oldest);
}

void StateCache::lend() {
  LOCKSTEP_CHECK(lent_ < lent_max_);
  ++lent_;
}

void StateCache::hold(int32_t state) {
  LOCKSTEP_CHECK(uses_[static_cast<size_t>(state)] > 0);
  ++uses_[static_cast<size_t>(state)];
}

void StateCache::drop(int32_t state) {
  int32_t& uses = uses_[static_cast<size_t>(state)];
  LOCKSTEP_CHECK(uses > 0);
  if (--uses == 0) free_.push_back(state);
}

void StateCache::attach(int32_t page, int32_t state) {
  int32_t& of_page = states_of_pages_[static_cast<size_t>(page)];
  if (of_page != kNone) {
    touch(of_page);
    return drop(state);
  }
  of_page = state;
  pages_of_states_[static_cast<size_t>(state)] = page;
  touch(state);
}

void StateCache::detach(int32_t page) {
  if (of_page(page) == kNone) return;
  int32_t& state = states_of_pages_[static_cast<size_t>(page)];
  pages_of_states_[static_cast<size_t>(state)] = kNone;
  drop(state);
  state = kNone;
}

int StateCache::snapshots() const {
  return static_cast<int>(pages_of_states_.size()) -
         static_cast<int>(std::count(pages_of_states_.begin(), pages_of_states_.end(), kNone));
}

}  // namespace lockstep
