// PrefixTree: which pages hold the state of which text beginnings. A page is found by the previous
// page and its own tokens, compared one by one: a hash only says where to look, so that no
// collision ever gives another text's state. Pages that no sequence uses are idle; an idle page
// without children can be evicted, least recently used first.
//
// It knows page numbers and their tokens, not their sequences or content (page_cache.h does). All
// memory is allocated at construction. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

class PrefixTree {
 public:
  static constexpr int32_t kNone = -1;

  // The tokens of one whole page. `hash` is chain_hash() of them and all pages before.
  struct Key {
    int32_t parent = kNone;           // the previous page; kNone: the text begins here
    std::span<const int32_t> tokens;  // (kPagePositions)
    uint64_t hash = 0;
  };

  explicit PrefixTree(int pages);

  // kNone: no page holds this.
  int32_t find(const Key& key) const;
  // `page` holds `key` and is in use. Neither may be in the tree yet, and its parent must be.
  void insert(const Key& key, int32_t page);
  bool contains(int32_t page) const { return node(page).is_present; }
  // For a page in the tree, or the last one taken out of it: the previous page, and its tokens.
  int32_t parent(int32_t page) const { return node(page).parent; }
  std::span<const int32_t> tokens(int32_t page) const;
  int size() const { return size_; }

  // A sequence uses the page: it stays. A page in use has no idle ancestor.
  void set_used(int32_t page);
  // No sequence uses it, nor any page after it.
  void set_idle(int32_t page);

  // Evicts the least recently used idle page without children. kNone if no page is idle.
  int32_t take_oldest();
  // Removes `page` and all its descendants, in use or not, and returns them.
  std::vector<int32_t> take_subtree(int32_t page);

 private:
  struct Node {
    bool is_present = false;
    bool is_idle = false;
    int32_t parent = kNone;
    int32_t children = 0;
    uint64_t hash = 0;
    uint64_t last_use = 0;
    int32_t next_in_bucket = kNone;
    int32_t older = kNone;  // neighbours among the idle leaves
    int32_t newer = kNone;
  };

  const Node& node(int32_t page) const { return nodes_[static_cast<size_t>(page)]; }
  Node& node(int32_t page) { return nodes_[static_cast<size_t>(page)]; }
  int32_t& bucket(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  bool is_behind(int32_t page, int32_t ancestor) const;
  void take_out(int32_t page);
  // `page` was removed: its parent has one child less.
  void leave_parent(int32_t page);
  // Into the list of idle leaves, ordered by last use.
  void link_leaf(int32_t page);
  void unlink_leaf(int32_t page);

  std::vector<Node> nodes_;       // (pages)
  std::vector<int32_t> tokens_;   // (pages, kPagePositions)
  std::vector<int32_t> buckets_;  // first pages by hash; a power of two
  int32_t oldest_ = kNone;        // ends of the list of idle leaves
  int32_t newest_ = kNone;
  uint64_t uses_ = 0;  // counts up: the clock of this tree
  int size_ = 0;
};

// For a page's tokens after those hashed into `before` (0: nothing).
uint64_t chain_hash(uint64_t before, std::span<const int32_t> tokens);

}  // namespace lockstep
