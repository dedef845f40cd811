// PageCache: the pages of all sequences of a scheduler, shared between texts with the same
// beginning. Computed pages enter a tree (prefix_tree.h) and stay there after their sequence ends,
// until the pool runs short. A sequence reuses the cached beginning and computes the rest.
//
// A page enters the tree once it is full and computed, and is never written again, so a beginning
// is whole pages. If two sequences have computed the same page anyway, both use the first one: its
// content depends on the tokens alone. Running sequences use at most the pages that their full
// length needs; all others are free or can be evicted from the tree, so a pool that is large enough
// for the running ones never runs out.
//
// With a disk (page_disk.h) the pages of the tree have keys by which they are found there. Pages
// not yet on disk are saved in the order of their computation, when the caller asks for one, or
// when they are evicted; if there is no room for them then, they are lost. No work is done for them
// earlier, so decoding pays nothing.
//
// Used by the scheduler; one thread. Only forget() allocates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/pages/page_disk.h"
#include "engine/pages/page_list.h"
#include "engine/pages/page_orders.h"
#include "engine/pages/prefix_tree.h"
#include "engine/pages/state_cache.h"
#include "model/forward/batch.h"
#include "model/load/sequence_state.h"

namespace lockstep {

// The pages of one sequence.
struct CachedPages {
  SequenceState state;
  std::vector<uint64_t> hashes;  // of the whole pages of its tokens, each including those before
  std::vector<PageKey> keys;     // of the prompt's whole pages; empty without a disk
  int in_tree = 0;               // leading pages of `state` that are in the tree
  bool enters_tree = true;       // false: no longer, an earlier page was evicted

  // With recurrent layers: the state after the last planned position; states that steps in flight
  // read, until positions [0, length) are computed; snapshots of [0, length) that have not entered
  // the tree; and the state before each guessed token.
  struct StateAt {
    int length;
    int32_t state;
  };
  int32_t recurrent = StateCache::kNone;
  std::vector<StateAt> read;
  std::vector<StateAt> snapshots;
  std::vector<int32_t> guessed;
  int latest_snapshot = 0;  // the length of the last one that has entered the tree
  int prompt = 0;           // tokens

  // For a sequence of up to this length: later calls allocate nothing.
  void reserve(int length);
  // Call with all tokens, after some were added.
  void hash(std::span<const int32_t> tokens);
  void make_keys(std::span<const int32_t> prompt);
};

// Positions of a sequence in a step; those from `known` on are guesses.
struct PlannedPositions {
  int begin = 0;
  int end = 0;
  int known = 0;
};

class PageCache {
 public:
  // `disk` must outlive it; null: there is none. `states` as for StateCache.
  explicit PageCache(int pages, PageDisk* disk = nullptr, int states = 0, int sequences = 0);

  // Adds the pages from the tree that follow those of `pages`, if all of these are in it, up to
  // position `positions_max`. Returns how many positions of `pages` are then in the tree.
  int take_over(CachedPages& pages, std::span<const int32_t> tokens, int positions_max);
  // Makes room for positions [0, length), evicting idle pages. Saves that must come before these
  // pages are overwritten are added to `orders`.
  void grow(CachedPages& pages, int length, PageOrders& orders);
  // Appends the states of these positions to the batch, if the model has recurrent layers.
  void plan_states(CachedPages& pages, const PlannedPositions& planned, Batch& batch);
  // Guesses that a step may have: each needs a state, and the token before them may leave a
  // snapshot.
  int guesses_max() const {
    return states_.is_needed() ? std::max(0, states_.spare() - 1) : kGuessesMax;
  }
  // The first `right` guesses of the last step were right.
  void end_guesses(CachedPages& pages, int right);
  // Frees pages beyond `length` that are not in the tree.
  void shrink(CachedPages& pages, int length);
  // The state of the first `length` tokens is computed: their whole pages enter the tree.
  void enter(CachedPages& pages, std::span<const int32_t> tokens, int length);
  // A sequence has ended: its pages in the tree stay there.
  void release(CachedPages& pages);
  // The pages' content is useless: they and all pages computed after the first of them leave the
  // tree. Sequences that use them keep them until they end.
  void forget(CachedPages& pages);

  bool has_disk() const { return disk_ != nullptr; }
  // A rank has no store: from now on there is no disk.
  void close_disk();
  // How many whole pages of `pages` after those in the tree, below position `positions_max`, are on
  // disk; counts up to kPageLoadsMax.
  int count_on_disk(const CachedPages& pages, int positions_max) const;
  // Size of this rank's part.
  size_t disk_page_bytes() const { return disk_ ? disk_->page_bytes() : 0; }
  // The page of the tree that has waited longest to be saved, if the disk has room for it. It
  // counts as saved from then on, unless set_unsaved() reverts that.
  std::optional<PageOrder> take_unsaved();
  void set_unsaved(const PageOrder& order);
  // The page cannot be loaded.
  void forget_on_disk(const PageKey& key);
  int unsaved_pages() const { return unsaved_.size(); }

  int snapshots() const { return states_.snapshots(); }
  int free_states() const { return states_.free_states(); }
  int free_pages() const { return pool_.free_pages(); }
  int cached_pages() const { return tree_.size(); }
  int pages() const { return pool_.pages(); }

 private:
  static constexpr int kGuessesMax = 1 << 20;  // more than there ever are

  void evict(PageOrders& orders);
  static PrefixTree::Key key_after(int32_t parent, const CachedPages& pages,
                                   std::span<const int32_t> tokens, size_t page);
  // In page_cache_states.cc.
  void plan_snapshot(CachedPages& pages, int length);
  void enter_states(CachedPages& pages, int length);
  void enter_snapshot(CachedPages& pages, const CachedPages::StateAt& snapshot);
  void release_states(CachedPages& pages);
  size_t pages_with_state(const CachedPages& pages, std::span<const int32_t> tokens,
                          size_t pages_max) const;
  void take_over_state(CachedPages& pages);
  // For a page of the tree; computed on demand, with those of the pages before.
  const PageKey& disk_key(int32_t page);

  StatePool pool_;
  PrefixTree tree_;
  StateCache states_;
  PageDisk* disk_;
  std::vector<PageKey>
      keys_;  // (pages) for those in the tree with `has_key_`; empty without a disk
  std::vector<bool> has_key_;        // (pages)
  PageList unsaved_;                 // pages of the tree that are not known to be on disk
  int32_t tried_ = PageList::kNone;  // the first of them, if another rank had no room for it
};

}  // namespace lockstep
