// StateCache: who uses which state of recurrent layers. A running sequence has one state that it
// overwrites. At some page borders it leaves that one as a snapshot of its beginning, which belongs
// to the page of the prefix tree that ends there, and goes on with another one. Snapshots
// that no sequence continues are evicted, least recently used first.
//
// A state is used by its sequence, by a step in flight that reads it, and by its page. Running
// sequences need two each at most, one to read and one to write; the rest of them may be lent for
// more (snapshots that are not computed yet, and the states after guessed tokens), so that a
// sequence never waits for a state. One thread; allocates nothing after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

class StateCache {
 public:
  static constexpr int32_t kNone = -1;

  // `states`: at least states_needed(sequences), or 0: the model has no recurrent layers.
  StateCache(int states, int sequences, int pages);

  bool is_needed() const { return !uses_.empty(); }
  // A state with one use, which may be overwritten. There must be a free one: if there is none,
  // the oldest snapshot must be detached first.
  int32_t take();
  // The page whose snapshot was used least recently, among those that no sequence continues.
  int32_t oldest_snapshot() const;
  void hold(int32_t state);
  void drop(int32_t state);
  bool is_shared(int32_t state) const { return uses_[static_cast<size_t>(state)] > 1; }

  // How many more states may be lent.
  int spare() const { return lent_max_ - lent_; }
  void lend();
  void return_lent(int count = 1) { lent_ -= count; }

  // The snapshot of a page, or kNone.
  int32_t of_page(int32_t page) const {
    return is_needed() ? states_of_pages_[static_cast<size_t>(page)] : kNone;
  }
  // The page that `state` is the snapshot of, or kNone.
  int32_t page_of(int32_t state) const { return pages_of_states_[static_cast<size_t>(state)]; }
  // Takes a use of `state` over; a page that has a snapshot keeps that one.
  void attach(int32_t page, int32_t state);
  // The page leaves the tree, or its snapshot is not worth keeping.
  void detach(int32_t page);
  // The snapshot is used now.
  void touch(int32_t state) { last_uses_[static_cast<size_t>(state)] = ++clock_; }
  int snapshots() const;
  int free_states() const { return static_cast<int>(free_.size()); }

 private:
  std::vector<int32_t> free_;
  std::vector<int32_t> uses_;             // (states)
  std::vector<int32_t> pages_of_states_;  // (states) that it is the snapshot of, or kNone
  std::vector<uint64_t> last_uses_;       // (states)
  std::vector<int32_t> states_of_pages_;  // (pages)
  uint64_t clock_ = 0;
  int lent_ = 0;
  int lent_max_ = 0;
};

}  // namespace lockstep
