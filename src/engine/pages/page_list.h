// PageList: some of the pages of a pool, in insertion order. A page is in it at most once; adding
// and removing take constant time. All memory is allocated at construction. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace lockstep {

class PageList {
 public:
  static constexpr int32_t kNone = -1;

  explicit PageList(int pages) : nodes_(static_cast<size_t>(pages)) {}

  // kNone: empty.
  int32_t front() const { return first_; }
  bool contains(int32_t page) const { return node(page).is_in; }
  int size() const { return size_; }

  void push_back(int32_t page) {
    LOCKSTEP_CHECK(!contains(page));
    node(page) = {.is_in = true, .before = last_};
    (last_ == kNone ? first_ : node(last_).after) = page;
    last_ = page;
    ++size_;
  }
  void push_front(int32_t page) {
    LOCKSTEP_CHECK(!contains(page));
    node(page) = {.is_in = true, .after = first_};
    (first_ == kNone ? last_ : node(first_).before) = page;
    first_ = page;
    ++size_;
  }
  // False if it was not in the list.
  bool remove(int32_t page) {
    Node& removed = node(page);
    if (!removed.is_in) return false;
    (removed.before == kNone ? first_ : node(removed.before).after) = removed.after;
    (removed.after == kNone ? last_ : node(removed.after).before) = removed.before;
    removed.is_in = false;
    --size_;
    return true;
  }

 private:
  struct Node {
    bool is_in = false;
    int32_t before = kNone;
    int32_t after = kNone;
  };

  const Node& node(int32_t page) const { return nodes_[static_cast<size_t>(page)]; }
  Node& node(int32_t page) { return nodes_[static_cast<size_t>(page)]; }

  std::vector<Node> nodes_;  // (pages)
  int32_t first_ = kNone;
  int32_t last_ = kNone;
  int size_ = 0;
};

}  // namespace lockstep
