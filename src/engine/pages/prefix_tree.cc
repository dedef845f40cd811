#include "engine/pages/prefix_tree.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "kernels/kernels.h"

namespace lockstep {

uint64_t chain_hash(uint64_t before, std::span<const int32_t> tokens) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio: spreads neighbours
  uint64_t hash = before;
  for (const int32_t token : tokens) {
    hash = (hash ^ static_cast<uint32_t>(token)) * kOdd;
    hash ^= hash >> 29;
  }
  return hash;
}

PrefixTree::PrefixTree(int pages)
    : nodes_(static_cast<size_t>(pages)),
      tokens_(static_cast<size_t>(pages) * kPagePositions),
      buckets_(std::bit_ceil(2 * static_cast<size_t>(pages) + 1), kNone) {}

std::span<const int32_t> PrefixTree::tokens(int32_t page) const {
  return std::span(tokens_).subspan(static_cast<size_t>(page) * kPagePositions, kPagePositions);
}

int32_t PrefixTree::find(const Key& key) const {
  LOCKSTEP_CHECK(key.tokens.size() == kPagePositions);
  int32_t page = buckets_[key.hash & (buckets_.size() - 1)];
  while (page != kNone) {
    const Node& found = node(page);
    const bool may_be = found.hash == key.hash && found.parent == key.parent;
    if (may_be && std::equal(key.tokens.begin(), key.tokens.end(), tokens(page).begin())) {
      return page;
    }
    page = found.next_in_bucket;
  }
  return kNone;
}

void PrefixTree::insert(const Key& key, int32_t page) {
  LOCKSTEP_CHECK(!contains(page) && key.tokens.size() == kPagePositions);
  int32_t& first = bucket(key.hash);
  node(page) = {.is_present = true,
                .parent = key.parent,
                .hash = key.hash,
                .last_use = ++uses_,
                .next_in_bucket = first};
  first = page;
  std::copy(key.tokens.begin(), key.tokens.end(),
            tokens_.begin() + static_cast<int64_t>(page) * kPagePositions);
  ++size_;
  if (key.parent == kNone) return;
  LOCKSTEP_CHECK(contains(key.parent) && !node(key.parent).is_idle);
  ++node(key.parent).children;
}

void PrefixTree::set_used(int32_t page) {
  Node& used = node(page);
  used.last_use = ++uses_;
  if (!used.is_idle) return;
  if (used.children == 0) unlink_leaf(page);
  used.is_idle = false;
}

void PrefixTree::set_idle(int32_t page) {
  Node& idle = node(page);
  LOCKSTEP_CHECK(idle.is_present && !idle.is_idle);
  idle.is_idle = true;
  idle.last_use = ++uses_;
  if (idle.children == 0) link_leaf(page);
}

// Usually at one of the ends: a page that has just become idle is the newest; one that lost its
// last child was usually last used together with it.
void PrefixTree::link_leaf(int32_t page) {
  const uint64_t last_use = node(page).last_use;
  int32_t older = newest_;
  if (newest_ == kNone || node(newest_).last_use > last_use) {
    int32_t newer = oldest_;
    while (newer != kNone && node(newer).last_use < last_use) newer = node(newer).newer;
    older = newer == kNone ? newest_ : node(newer).older;
  }
  const int32_t newer = older == kNone ? oldest_ : node(older).newer;
  node(page).older = older;
  node(page).newer = newer;
  (older == kNone ? oldest_ : node(older).newer) = page;
  (newer == kNone ? newest_ : node(newer).older) = page;
}

void PrefixTree::unlink_leaf(int32_t page) {
  const Node& leaf = node(page);
  (leaf.older == kNone ? oldest_ : node(leaf.older).newer) = leaf.newer;
  (leaf.newer == kNone ? newest_ : node(leaf.newer).older) = leaf.older;
}

int32_t PrefixTree::take_oldest() {
  const int32_t page = oldest_;
  if (page == kNone) return kNone;
  take_out(page);
  leave_parent(page);
  return page;
}

void PrefixTree::take_out(int32_t page) {
  Node& taken = node(page);
  if (taken.is_idle && taken.children == 0) unlink_leaf(page);
  int32_t* link = &bucket(taken.hash);
  while (*link != page) link = &node(*link).next_in_bucket;
  *link = taken.next_in_bucket;
  taken.is_present = false;
  --size_;
}

void PrefixTree::leave_parent(int32_t page) {
  const int32_t before = node(page).parent;
  if (before == kNone) return;
  Node& parent = node(before);
  if (--parent.children == 0 && parent.is_idle) link_leaf(before);
}

bool PrefixTree::is_behind(int32_t page, int32_t ancestor) const {
  while (page != kNone && page != ancestor) page = node(page).parent;
  return page == ancestor;
}

// Rare: visits every page.
std::vector<int32_t> PrefixTree::take_subtree(int32_t page) {
  std::vector<int32_t> taken;
  for (int32_t other = 0; other < static_cast<int32_t>(nodes_.size()); ++other) {
    if (contains(other) && is_behind(other, page)) taken.push_back(other);
  }
  for (const int32_t each : taken) take_out(each);
  leave_parent(page);
  return taken;
}

}  // namespace lockstep
