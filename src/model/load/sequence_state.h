// SequenceState: one sequence's state as the scheduler sees it: page numbers, which mean the same
// on every rank. StatePool allocates pages and counts their users; each rank has its own memory for
// them (model/forward/model.h). Sequences with the same beginning may share pages, which are no
// longer written. Recurrent layers have states of their own (engine/pages/state_cache.h). Used by
// rank 0's scheduler; one thread.
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
  // Memory for the page numbers of `length` positions: grow() up to there allocates nothing.
  static void reserve(SequenceState& state, int length);
  // Room for positions [0, length). kExhausted, and no change, if the pool has too few pages.
  Status grow(SequenceState& state, int length);
  // Drops positions from `length` on (a rollback; 0 releases everything). A page is free once it
  // has no users.
  void truncate(SequenceState& state, int length);

  // The next positions of `state` are in `page`, which others use too: it must be full.
  void share(SequenceState& state, int32_t page);
  // The same for page `index` of `state`, replacing one that holds the same positions.
  void replace(SequenceState& state, size_t index, int32_t page);
  // A use of a page outside any sequence.
  void hold(int32_t page);
  void drop(int32_t page);

 private:
  std::vector<int32_t> free_;  // a stack: the last page freed is reused first
  std::vector<int32_t> uses_;  // (pages)
};

// Pages for `positions` positions.
int pages_for(int positions);

// Window pages hold what only the next `reach` positions need of a page (StateTraits::reach). They
// have numbers of their own and are fewer: a page has one while a sequence needs it, and after that
// until another page takes it (engine/pages/window_cache.h).
struct WindowNeed {
  int reach = 0;       // 0: there are none
  int sequences = 0;   // that run together
  int tokens_max = 0;  // of a batch
  int pages = 0;
};
// The pages that a token's reach touches at most, with its own; and the first of them.
int window_span(int reach);
int first_window_page(int position, int reach);
// Reaches of beginnings that no sequence runs.
inline constexpr int kWindowsSpare = 8;
// For each running sequence two reaches, one where it is and one where it is about to go on, with
// pages that it has begun; those of a batch's tokens; and the spare ones. At most `pages`.
int window_pages_needed(const WindowNeed& need);

// States of recurrent layers that a running sequence may need, one to read and one to write; and
// those for all sequences together that hold snapshots of beginnings, or follow guessed tokens.
inline constexpr int kStatesOfSequence = 2;
inline constexpr int kStatesSpare = 8;
constexpr int states_needed(int sequences) {
  return kStatesOfSequence * sequences + kStatesSpare;
}
// Prompts leave a snapshot at least this often, as long as there is room for it.
inline constexpr int kSnapshotPositions = 1024;

}  // namespace lockstep
