#include "engine/pages/page_cache.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kernels.h"

namespace lockstep {
namespace {

std::span<const int32_t> page_tokens(std::span<const int32_t> tokens, size_t page) {
  return tokens.subspan(page * kPagePositions, kPagePositions);
}

int32_t parent_of(const CachedPages& pages, size_t page) {
  return page == 0 ? PrefixTree::kNone : pages.state.pages()[page - 1];
}

}  // namespace

PrefixTree::Key PageCache::key_after(int32_t parent, const CachedPages& pages,
                                     std::span<const int32_t> tokens, size_t page) {
  return {.parent = parent, .tokens = page_tokens(tokens, page), .hash = pages.hashes[page]};
}

void CachedPages::reserve(int length) {
  StatePool::reserve(state, length);
  hashes.reserve(static_cast<size_t>(pages_for(length)));
  for (std::vector<StateAt>* states : {&read, &snapshots}) states->reserve(kStatesSpare + 2);
  guessed.reserve(kStatesSpare + 1);
}

void CachedPages::hash(std::span<const int32_t> tokens) {
  while ((hashes.size() + 1) * kPagePositions <= tokens.size()) {
    const uint64_t before = hashes.empty() ? 0 : hashes.back();
    hashes.push_back(chain_hash(before, page_tokens(tokens, hashes.size())));
  }
}

void CachedPages::make_keys(std::span<const int32_t> prompt) {
  while ((keys.size() + 1) * kPagePositions <= prompt.size()) {
    const PageKey before = keys.empty() ? PageKey{} : keys.back();
    keys.push_back(page_key(before, page_tokens(prompt, keys.size())));
  }
}

PageCache::PageCache(int pages, PageDisk* disk, const Parts& parts)
    : pool_(pages),
      tree_(pages),
      states_(parts.states, parts.sequences, pages),
      windows_(parts.window_pages, parts.reach, pages),
      disk_(disk),
      unsaved_(disk ? pages : 0),
      unsaved_states_(disk && has_places() ? pages : 0) {
  if (!disk) return;
  keys_.resize(static_cast<size_t>(pages));
  has_key_.resize(static_cast<size_t>(pages));
}

int PageCache::take_over(CachedPages& pages, std::span<const int32_t> tokens, int positions_max) {
  const size_t count = pages.state.pages().size();
  if (!pages.enters_tree || static_cast<size_t>(pages.in_tree) != count) {
    return pages.in_tree * kPagePositions;
  }
  auto pages_max = static_cast<size_t>(positions_max / kPagePositions);
  if (states_.is_needed()) pages_max = pages_with_state(pages, tokens, pages_max);
  if (windows_.is_needed()) pages_max = pages_with_windows(pages, tokens, pages_max);
  share_from_tree(pages, tokens, pages_max);
  const bool is_longer = static_cast<size_t>(pages.in_tree) > count;
  if (states_.is_needed() && is_longer) take_over_state(pages);
  if (windows_.is_needed() && is_longer) take_over_windows(pages);
  return pages.in_tree * kPagePositions;
}

// All of its pages are in the tree.
void PageCache::share_from_tree(CachedPages& pages, std::span<const int32_t> tokens,
                                size_t pages_max) {
  for (size_t count = pages.state.pages().size(); count < pages_max; ++count) {
    const int32_t page = tree_.find(key_after(parent_of(pages, count), pages, tokens, count));
    if (page == PrefixTree::kNone) break;
    tree_.set_used(page);
    pool_.share(pages.state, page);
    ++pages.in_tree;
  }
}

void PageCache::grow(CachedPages& pages, int length, bool are_loaded, PageOrders& orders) {
  const size_t before = pages.state.pages().size();
  const int missing = pages_for(length) - static_cast<int>(before);
  while (pool_.free_pages() < missing) evict(orders);
  const Status grown = pool_.grow(pages.state, length);
  LOCKSTEP_CHECK(grown.ok());
  if (!windows_.is_needed()) return;
  for (const int32_t page : pages.state.pages().subspan(before)) {
    windows_.detach(page);  // of what it held before
    if (!are_loaded) take_window(page, false, orders);
  }
  if (!are_loaded) pages.windows.end = static_cast<int>(pages.state.pages().size());
}

void PageCache::evict(PageOrders& orders) {
  const int32_t page = tree_.take_oldest();
  LOCKSTEP_CHECK(page != PrefixTree::kNone);  // the pool is large enough for all running sequences
  evict_state(page, orders);
  pool_.drop(page);
  if (!disk_ || !unsaved_.remove(page)) return;
  if (orders.saves.size() >= kPageSavesMax || !disk_->has_room()) return;
  const PageKey& key = disk_key(page);
  if (!disk_->is_saved(key)) orders.saves.push_back({page, key});
}

void PageCache::shrink(CachedPages& pages, int length) {
  LOCKSTEP_CHECK(pages_for(length) >= pages.in_tree);
  leave_windows(pages, pages_for(length));
  pool_.truncate(pages.state, length);
}

void PageCache::enter(CachedPages& pages, std::span<const int32_t> tokens, int length) {
  while (pages.enters_tree && (pages.in_tree + 1) * kPagePositions <= length) {
    const auto index = static_cast<size_t>(pages.in_tree);
    const PrefixTree::Key key = key_after(parent_of(pages, index), pages, tokens, index);
    if (key.parent != PrefixTree::kNone && !tree_.contains(key.parent)) {
      pages.enters_tree = false;
      break;
    }
    const int32_t page = pages.state.pages()[index];
    const int32_t known = tree_.find(key);
    if (known != PrefixTree::kNone) {
      if (!replace_window(pages, page, known, pages.in_tree)) break;  // later
      tree_.set_used(known);
      pool_.replace(pages.state, index, known);
    } else {
      tree_.insert(key, page);
      pool_.hold(page);
      if (disk_) {
        has_key_[static_cast<size_t>(page)] = index < pages.keys.size();
        if (index < pages.keys.size()) keys_[static_cast<size_t>(page)] = pages.keys[index];
        unsaved_.push_back(page);
      }
    }
    ++pages.in_tree;
    const bool is_prompt = pages.in_tree == (pages.prompt - 1) / kPagePositions;
    if (is_prompt || pages.in_tree == pages.matched) set_unsaved_windows(pages);
  }
  if (states_.is_needed()) enter_states(pages, length);
}

void PageCache::release(CachedPages& pages) {
  release_states(pages);
  drop_windows_to_resume(pages);
  set_unsaved_windows(pages);
  leave_pages(pages, 0);
}

// From the end: a page is idle only after its descendants are.
void PageCache::leave_pages(CachedPages& pages, size_t count) {
  leave_windows(pages, static_cast<int>(count));
  const auto numbers = pages.state.pages();
  for (size_t i = numbers.size(); i-- > count;) {
    const int32_t page = numbers[i];
    if (tree_.contains(page) && pool_.use_count(page) == 2) tree_.set_idle(page);
  }
  pool_.truncate(pages.state, static_cast<int>(count) * kPagePositions);
  pages.in_tree = std::min(pages.in_tree, static_cast<int>(count));
}

void PageCache::forget(CachedPages& pages) {
  pages.enters_tree = false;
  if (pages.in_tree == 0) return;
  const int32_t first = pages.state.pages()[0];
  if (!tree_.contains(first)) return;  // another sequence has already made the tree forget it
  for (const int32_t page : tree_.take_subtree(first)) {
    pool_.drop(page);
    drop_snapshot(page);
    forget_window(page);
    if (!disk_) continue;
    unsaved_.remove(page);
    disk_->forget(disk_key(page));
    if (has_places()) disk_->forget_state(disk_key(page));
  }
}

}  // namespace lockstep
