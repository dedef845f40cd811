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
// Used by the scheduler; one thread. Nothing is allocated but by forget().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/prefix_tree.h"
#include "model/sequence_state.h"

namespace lockstep {

// The pages of one sequence.
struct CachedPages {
  SequenceState state;
  std::vector<uint64_t> hashes;  // of the whole pages of its tokens, each with those before
  int in_tree = 0;               // leading pages of `state` that are in the tree
  bool enters_tree = true;       // false: not any more, a page before was taken out of it

  // For a sequence that may become so long: later calls allocate nothing.
  void reserve(int length);
  // To be called with all tokens, after some were added.
  void hash(std::span<const int32_t> tokens);
};

class PageCache {
 public:
  explicit PageCache(int pages) : pool_(pages), tree_(pages) {}

  // Takes the pages over that follow those of `pages` in the tree, if all of these are in it, up to
  // position `positions_max`. Returns the positions of `pages` that are in the tree then.
  int take_over(CachedPages& pages, std::span<const int32_t> tokens, int positions_max);
  // Room for positions [0, length), at the cost of idle pages.
  void grow(CachedPages& pages, int length);
  // The state of the first `length` tokens is computed: their whole pages enter the tree.
  void enter(CachedPages& pages, std::span<const int32_t> tokens, int length);
  // A sequence has ended: what is in the tree stays there.
  void release(CachedPages& pages);
  // What the pages hold is of no use: they, and all that was computed behind the first of them,
  // leave the tree. Sequences that use them keep them until they end.
  void forget(CachedPages& pages);

  int free_pages() const { return pool_.free_pages(); }
  int cached_pages() const { return tree_.size(); }
  int pages() const { return pool_.pages(); }

 private:
  StatePool pool_;
  PrefixTree tree_;
};

}  // namespace lockstep
