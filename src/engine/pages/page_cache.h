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
// earlier, so decoding pays nothing. Snapshots of recurrent layers are saved in the same way, each
// after its page: the last one of a prompt and of an answer, and those that another sequence has
// continued. So are the window pages that a sequence needs to go on from these places.
//
// A model with window pages (window_cache.h) takes a beginning over only where the pages that the
// next token reaches back to still have theirs, with their content.
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
#include "engine/pages/window_cache.h"
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
  // With window pages: the pages [begin, end) whose window pages the sequence uses.
  struct Windows {
    int begin = 0;
    int end = 0;
  };
  Windows windows;
  int taken_over = 0;  // pages, the last time
  int matched = 0;     // pages that another text in the tree begins with too, at most so far

  // While pages up to a state on disk are being loaded: the state's number once that is ordered,
  // how many pages there are up to it, and how many before the sequence began to load. With window
  // pages: those that it uses for going on from there, until it has all.
  struct Resume {
    int32_t state = StateCache::kNone;
    int pages = 0;
    int pages_before = 0;
    Windows windows{};
  };
  Resume resume;

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
  // For a model with recurrent layers, or with window pages: as for StateCache and WindowCache.
  struct Parts {
    int states = 0;
    int sequences = 0;
    int window_pages = 0;
    int reach = 0;
  };
  // `disk` must outlive it; null: there is none.
  PageCache(int pages, PageDisk* disk, const Parts& parts);

  // Adds the pages from the tree that follow those of `pages`, if all of these are in it, up to
  // position `positions_max`. Returns how many positions of `pages` are then in the tree.
  int take_over(CachedPages& pages, std::span<const int32_t> tokens, int positions_max);
  // Makes room for positions [0, length), evicting idle pages. Saves that must come before these
  // pages are overwritten are added to `orders`. Pages that are not loaded get window pages.
  void grow(CachedPages& pages, int length, bool are_loaded, PageOrders& orders);
  // Appends the states of these positions to the batch, if the model has recurrent layers. A state
  // that must be saved before it is overwritten is added to `orders`.
  void plan_states(CachedPages& pages, const PlannedPositions& planned, Batch& batch,
                   PageOrders& orders);
  // Guesses that a step may have: each needs a state, and the token before them may leave a
  // snapshot.
  int guesses_max() const {
    return states_.is_needed() ? std::max(0, states_.spare() - 1) : kGuessesMax;
  }
  // Both do nothing if the model has no window pages. Appends those of the sequence's last pages to
  // the batch, and returns where the list of all its pages would begin. After all of a step is
  // planned: the sequence goes on from `position`.
  static constexpr int32_t kNoWindows = INT32_MIN;
  int32_t list_windows(const CachedPages& pages, Batch& batch) const;
  void pass_windows(CachedPages& pages, int position);
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

  // The rest, up to the counts, is in page_cache_disk.cc.
  bool has_disk() const { return disk_ != nullptr; }
  // A rank has no store: from now on there is no disk.
  void close_disk();
  // How many whole pages of `pages` after those in the tree, below position `positions_max`, are on
  // disk; counts up to kPageLoadsMax. Not if has_places().
  int count_on_disk(const CachedPages& pages, int positions_max) const;
  // Size of this rank's part, and of that of a state or a window page.
  size_t disk_page_bytes() const { return disk_ ? disk_->page_bytes() : 0; }
  size_t disk_state_bytes() const { return disk_ ? disk_->state_bytes() : 0; }
  // The page of the tree that has waited longest to be saved, if the disk has room for it. It
  // counts as saved from then on, unless set_unsaved() reverts that.
  std::optional<PageOrder> take_unsaved();
  void set_unsaved(const PageOrder& order);
  // The same for snapshots, and window pages, whose pages have been saved.
  std::optional<StateOrder> take_unsaved_state();
  void set_unsaved(const StateOrder& order);
  // The pages of the tree from number `begin` on were loaded.
  void set_saved(const CachedPages& pages, int begin);
  // The page, or its state, cannot be loaded.
  void forget_on_disk(const PageKey& key);
  void forget_state_on_disk(const PageKey& key);
  int unsaved_pages() const { return unsaved_.size(); }
  int unsaved_states() const { return unsaved_states_.size(); }

  // Whether a sequence can go on only at some places of its pages.
  bool has_places() const { return states_.is_needed() || windows_.is_needed(); }
  // Then: begins to load the pages of `pages`, and the state or window pages, up to the last place
  // below position `positions_max` where these are on disk and whose pages are there or in the
  // tree. False, and nothing is done, if none is further than `pages` reach.
  bool begin_resume(CachedPages& pages, std::span<const int32_t> tokens, int positions_max);
  // Takes over what the tree has of those pages. Returns how many more have to be loaded.
  int share_resumed(CachedPages& pages, std::span<const int32_t> tokens);
  // Adds the order to load the state.
  void load_state(CachedPages& pages, PageOrders& orders);
  // The order was carried out, or not. Returns whether the sequence continues from the state.
  bool end_state_load(CachedPages& pages, bool is_loaded);
  // With window pages, once all pages are there: whether one is neither in memory nor on disk any
  // more. If not, adds the orders to load up to `most` of those that are missing, and returns their
  // number.
  bool has_lost_window(const CachedPages& pages) const;
  int load_windows(CachedPages& pages, int most, PageOrders& orders);
  // Whether the sequence uses all that it needs, loaded or being loaded.
  bool has_windows_to_resume(const CachedPages& pages) const {
    return pages.resume.windows.end == pages.resume.pages;
  }
  // The orders were carried out, or not. False if the sequence cannot continue there; if it has
  // all, it does.
  bool end_window_loads(CachedPages& pages, bool are_loaded);
  // Back to the pages before begin_resume().
  void give_up_resume(CachedPages& pages);

  int snapshots() const { return states_.snapshots(); }
  int free_states() const { return states_.free_states(); }
  int unused_windows() const { return windows_.unused(); }
  int free_pages() const { return pool_.free_pages(); }
  int cached_pages() const { return tree_.size(); }
  int pages() const { return pool_.pages(); }

 private:
  static constexpr int kGuessesMax = 1 << 20;  // more than there ever are

  void evict(PageOrders& orders);
  void share_from_tree(CachedPages& pages, std::span<const int32_t> tokens, size_t pages_max);
  // Leaves the first `count` pages; those in the tree become idle if no other sequence uses them.
  void leave_pages(CachedPages& pages, size_t count);
  // Visits the pages that follow those of `pages`, all of which are in the tree, as far as the tree
  // has them, and then as far as `disk` does, if given: each page's place in the sequence, and its
  // number, or kNone. Returns the number of pages up to there.
  template <class Visit>
  size_t follow(const CachedPages& pages, std::span<const int32_t> tokens, size_t pages_max,
                const PageDisk* disk, Visit visit) const {
    auto count = static_cast<size_t>(pages.in_tree);
    int32_t page = count == 0 ? PrefixTree::kNone : pages.state.pages()[count - 1];
    for (bool is_in_tree = true; count < pages_max; ++count) {
      if (is_in_tree) page = tree_.find(key_after(page, pages, tokens, count));
      is_in_tree = is_in_tree && page != PrefixTree::kNone;
      if (!is_in_tree && (disk == nullptr || !disk->contains(pages.keys[count]))) break;
      visit(static_cast<int>(count), page);
    }
    return count;
  }
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
  int32_t take_state(PageOrders& orders);
  void drop_snapshot(int32_t page);
  // Takes the page's snapshot or window page, if it has one, which nobody uses. An unsaved one is
  // saved if the disk has room for it.
  void evict_state(int32_t page, PageOrders& orders);
  bool saves_states() const { return disk_ != nullptr && has_places(); }
  void set_unsaved_state(int32_t page);
  // The number of the page's snapshot or window page, and the reverse; -1: it has none.
  int32_t state_of_page(int32_t page) const {
    return states_.is_needed() ? states_.of_page(page) : windows_.of_page(page);
  }
  int32_t page_of_state(int32_t state) const {
    return states_.is_needed() ? states_.page_of(state) : windows_.page_of(state);
  }
  // In page_cache_windows.cc.
  int first_window(int pages) const;
  void take_window(int32_t page, bool is_loading, PageOrders& orders);
  void forget_window(int32_t page);
  struct Places {
    int last = 0;
    int all = 0;
  };
  Places window_places(const CachedPages& pages, std::span<const int32_t> tokens, size_t pages_max,
                       const PageDisk* disk) const;
  size_t pages_with_windows(CachedPages& pages, std::span<const int32_t> tokens,
                            size_t pages_max) const;
  void take_over_windows(CachedPages& pages);
  void use_windows(CachedPages& pages, CachedPages::Windows used);
  void leave_windows(CachedPages& pages, int end);
  void leave_window(int32_t page);
  bool replace_window(const CachedPages& pages, int32_t own, int32_t known, int index);
  WindowCache::Worth worth_of(const CachedPages& pages, int index) const;
  void set_unsaved_windows(const CachedPages& pages);
  bool begin_window_resume(CachedPages& pages, std::span<const int32_t> tokens, size_t pages_max);
  void drop_windows_to_resume(CachedPages& pages);
  // For a page of the tree; computed on demand, with those of the pages before.
  const PageKey& disk_key(int32_t page);

  StatePool pool_;
  PrefixTree tree_;
  StateCache states_;
  WindowCache windows_;
  PageDisk* disk_;
  std::vector<PageKey>
      keys_;  // (pages) for those in the tree with `has_key_`; empty without a disk
  std::vector<bool> has_key_;        // (pages)
  PageList unsaved_;                 // pages of the tree that are not known to be on disk
  int32_t tried_ = PageList::kNone;  // the first of them, if another rank had no room for it
  // Those whose snapshots or window pages are worth it and not known to be there.
  PageList unsaved_states_;
  int32_t tried_state_ = PageList::kNone;
};

}  // namespace lockstep
