// PageCache: the pages of all sequences of a scheduler, shared where texts begin alike. Pages whose
// tokens are computed enter a tree (prefix_tree.h) and stay there when their sequence ends, until
// the pool runs short. A sequence takes the beginning that is there over and computes the rest.
//
// A page enters the tree once it is full and computed, and is never written again, so a beginning
// is whole pages. Where two sequences have computed the same page nevertheless, both use the one
// that came first: what lies in it depends on the tokens alone. The pages that running sequences
// use are at most those that they may become; all others are free or can be taken from the tree, so
// that a pool which is enough for the running ones never runs out.
//
// With a disk (page_disk.h) the pages of the tree have keys by which they are found there. Those
// that are not there yet are saved in the order in which they were computed, when somebody asks for
// one, or when they leave the tree; where there is no room for them then, they are lost. Until then
// nothing is done about them, so that sequences which decode pay for nothing.
//
// Used by the scheduler; one thread. Nothing is allocated but by forget().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/page_disk.h"
#include "engine/page_list.h"
#include "engine/page_orders.h"
#include "engine/prefix_tree.h"
#include "model/sequence_state.h"

namespace lockstep {

// The pages of one sequence.
struct CachedPages {
  SequenceState state;
  std::vector<uint64_t> hashes;  // of the whole pages of its tokens, each with those before
  std::vector<PageKey> keys;     // of the prompt's whole pages; empty without a disk
  int in_tree = 0;               // leading pages of `state` that are in the tree
  bool enters_tree = true;       // false: not any more, a page before was taken out of it

  // For a sequence that may become so long: later calls allocate nothing.
  void reserve(int length);
  // To be called with all tokens, after some were added.
  void hash(std::span<const int32_t> tokens);
  void make_keys(std::span<const int32_t> prompt);
};

class PageCache {
 public:
  // `disk` must outlive it; null: there is none.
  explicit PageCache(int pages, PageDisk* disk = nullptr);

  // Takes the pages over that follow those of `pages` in the tree, if all of these are in it, up to
  // position `positions_max`. Returns the positions of `pages` that are in the tree then.
  int take_over(CachedPages& pages, std::span<const int32_t> tokens, int positions_max);
  // Room for positions [0, length), at the cost of idle pages. What must be saved before anybody
  // writes there is added to `orders`.
  void grow(CachedPages& pages, int length, PageOrders& orders);
  // Gives pages back that are not in the tree.
  void shrink(CachedPages& pages, int length);
  // The state of the first `length` tokens is computed: their whole pages enter the tree.
  void enter(CachedPages& pages, std::span<const int32_t> tokens, int length);
  // A sequence has ended: what is in the tree stays there.
  void release(CachedPages& pages);
  // What the pages hold is of no use: they, and all that was computed behind the first of them,
  // leave the tree. Sequences that use them keep them until they end.
  void forget(CachedPages& pages);

  bool has_disk() const { return disk_ != nullptr; }
  // A rank has no store: from now on there is no disk.
  void close_disk();
  // How many pages of `pages` that follow those in the tree lie on the disk, of the whole ones
  // below position `positions_max`; counts up to kPageLoadsMax.
  int count_on_disk(const CachedPages& pages, int positions_max) const;
  // Of this rank's parts.
  size_t disk_page_bytes() const { return disk_ ? disk_->page_bytes() : 0; }
  // The page of the tree that has waited longest to be saved, if the disk has room for it. It
  // counts as saved from then on, until set_unsaved() takes that back.
  std::optional<PageOrder> take_unsaved();
  void set_unsaved(const PageOrder& order);
  // The page cannot be loaded.
  void forget_on_disk(const PageKey& key);
  int unsaved_pages() const { return unsaved_.size(); }

  int free_pages() const { return pool_.free_pages(); }
  int cached_pages() const { return tree_.size(); }
  int pages() const { return pool_.pages(); }

 private:
  void evict(PageOrders& orders);
  // Of a page of the tree; made when it is asked for, with those of the pages before.
  const PageKey& disk_key(int32_t page);

  StatePool pool_;
  PrefixTree tree_;
  PageDisk* disk_;
  std::vector<PageKey>
      keys_;  // (pages) of those in the tree, where `has_key_`; without a disk empty
  std::vector<bool> has_key_;  // (pages)
  PageList unsaved_;  // pages of the tree of which it is not known that they are on the disk
  int32_t tried_ = PageList::kNone;  // the first of them, if another rank had no room for it
};

}  // namespace lockstep
