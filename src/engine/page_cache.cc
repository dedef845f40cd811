#include "engine/page_cache.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kernels.h"

namespace lockstep {
namespace {

std::span<const int32_t> page_tokens(std::span<const int32_t> tokens, size_t page) {
  return tokens.subspan(page * kPagePositions, kPagePositions);
}

PrefixTree::Key key_of(const CachedPages& pages, std::span<const int32_t> tokens, size_t page) {
  return {.parent = page == 0 ? PrefixTree::kNone : pages.state.pages()[page - 1],
          .tokens = page_tokens(tokens, page),
          .hash = pages.hashes[page]};
}

}  // namespace

void CachedPages::reserve(int length) {
  StatePool::reserve(state, length);
  hashes.reserve(static_cast<size_t>(pages_for(length)));
}

void CachedPages::hash(std::span<const int32_t> tokens) {
  while ((hashes.size() + 1) * kPagePositions <= tokens.size()) {
    const uint64_t before = hashes.empty() ? 0 : hashes.back();
    hashes.push_back(chain_hash(before, page_tokens(tokens, hashes.size())));
  }
}

int PageCache::take_over(CachedPages& pages, std::span<const int32_t> tokens, int positions_max) {
  const auto pages_max = static_cast<size_t>(positions_max / kPagePositions);
  size_t count = pages.state.pages().size();
  while (pages.enters_tree && count < pages_max && static_cast<size_t>(pages.in_tree) == count) {
    const int32_t page = tree_.find(key_of(pages, tokens, count));
    if (page == PrefixTree::kNone) break;
    tree_.set_used(page);
    pool_.share(pages.state, page);
    pages.in_tree = static_cast<int>(++count);
  }
  return pages.in_tree * kPagePositions;
}

void PageCache::grow(CachedPages& pages, int length) {
  const int missing = pages_for(length) - static_cast<int>(pages.state.pages().size());
  while (pool_.free_pages() < missing) {
    const int32_t page = tree_.take_oldest();
    LOCKSTEP_CHECK(page != PrefixTree::kNone);  // the pool is enough for all that run
    pool_.drop(page);
  }
  const Status grown = pool_.grow(pages.state, length);
  LOCKSTEP_CHECK(grown.ok());
}

void PageCache::enter(CachedPages& pages, std::span<const int32_t> tokens, int length) {
  while (pages.enters_tree && (pages.in_tree + 1) * kPagePositions <= length) {
    const auto index = static_cast<size_t>(pages.in_tree);
    const PrefixTree::Key key = key_of(pages, tokens, index);
    if (key.parent != PrefixTree::kNone && !tree_.contains(key.parent)) {
      pages.enters_tree = false;
      return;
    }
    const int32_t page = pages.state.pages()[index];
    const int32_t known = tree_.find(key);
    if (known != PrefixTree::kNone) {
      tree_.set_used(known);
      pool_.replace(pages.state, index, known);
    } else {
      tree_.insert(key, page);
      pool_.hold(page);
    }
    ++pages.in_tree;
  }
}

// From the end: a page is idle only after those behind it are.
void PageCache::release(CachedPages& pages) {
  const auto numbers = pages.state.pages();
  for (size_t i = numbers.size(); i-- > 0;) {
    const int32_t page = numbers[i];
    if (tree_.contains(page) && pool_.use_count(page) == 2) tree_.set_idle(page);
  }
  pool_.truncate(pages.state, 0);
  pages.in_tree = 0;
}

void PageCache::forget(CachedPages& pages) {
  pages.enters_tree = false;
  if (pages.in_tree == 0) return;
  const int32_t first = pages.state.pages()[0];
  if (!tree_.contains(first)) return;  // another sequence has had it forgotten
  for (const int32_t page : tree_.take_subtree(first)) pool_.drop(page);
}

}  // namespace lockstep
