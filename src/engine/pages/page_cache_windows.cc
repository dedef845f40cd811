// A PageCache's work for models with window pages: which pages have one, where a sequence can go
// on, and which window pages are saved and loaded.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/pages/page_cache.h"
#include "kernels/kernels.h"

namespace lockstep {

// The first page of which a sequence needs the window page to go on after so many pages.
int PageCache::first_window(int pages) const {
  return windows_.first_page(pages * kPagePositions);
}

void PageCache::take_window(int32_t page, bool is_loading, PageOrders& orders) {
  const int32_t loser = windows_.next_to_lose();
  if (loser != WindowCache::kNone) save_evicted_state(loser, orders);
  windows_.take(page, is_loading);
}

void PageCache::evict_window(int32_t page, PageOrders& orders) {
  save_evicted_state(page, orders);
  windows_.detach(page);
}

// The page leaves the tree; sequences that use its window page keep it.
void PageCache::forget_window(int32_t page) {
  if (windows_.of_page(page) == WindowCache::kNone) return;
  if (saves_states()) unsaved_states_.remove(page);
  if (!windows_.is_used(page)) windows_.detach(page);
}

int32_t PageCache::list_windows(const CachedPages& pages, Batch& batch) const {
  if (!windows_.is_needed()) return kNoWindows;
  const auto list = static_cast<int32_t>(batch.window_lists.size());
  for (int i = pages.windows.begin; i < pages.windows.end; ++i) {
    batch.window_lists.push_back(windows_.of_page(pages.state.pages()[static_cast<size_t>(i)]));
  }
  return list - pages.windows.begin;
}

// It also keeps those for going on from the last page border, where another request may.
void PageCache::pass_windows(CachedPages& pages, int position) {
  if (!windows_.is_needed()) return;
  use_windows(pages, {first_window(position / kPagePositions), pages.windows.end});
}

// Uses these instead of the ones so far.
void PageCache::use_windows(CachedPages& pages, CachedPages::Windows used) {
  const auto numbers = pages.state.pages();
  for (int i = used.begin; i < used.end; ++i) windows_.hold(numbers[static_cast<size_t>(i)]);
  const CachedPages::Windows before = std::exchange(pages.windows, used);
  for (int i = before.begin; i < before.end; ++i) {
    windows_.drop(numbers[static_cast<size_t>(i)], worth_of(pages, i));
  }
}

// The pages from number `end` on are no longer the sequence's.
void PageCache::leave_windows(CachedPages& pages, int end) {
  CachedPages::Windows& windows = pages.windows;
  while (windows.end > std::max(end, windows.begin)) {
    --windows.end;
    leave_window(pages.state.pages()[static_cast<size_t>(windows.end)]);
  }
  if (windows.end > end) windows = {end, end};
}

void PageCache::leave_window(int32_t page) {
  windows_.drop(page, WindowCache::Worth::kEnd);
  if (!tree_.contains(page) && !windows_.is_used(page)) windows_.detach(page);
}

// Other requests may begin with all of this prompt, with the pages that it has in common with
// others so far, or with some of it.
WindowCache::Worth PageCache::worth_of(const CachedPages& pages, int index) const {
  const auto is_needed_after = [&](int count) {
    return first_window(count) <= index && index < count;
  };
  const int prompt = (pages.prompt - 1) / kPagePositions;
  for (const int end : {prompt, pages.taken_over, pages.matched}) {
    if (is_needed_after(end)) return WindowCache::Worth::kEnd;
  }
  constexpr int kInterval = kSnapshotPositions / kPagePositions;
  const int place = (index / kInterval + 1) * kInterval;
  return is_needed_after(place) ? WindowCache::Worth::kInterval : WindowCache::Worth::kLittle;
}

// The window pages for going on after the pages that are in the tree are worth saving.
void PageCache::set_unsaved_windows(const CachedPages& pages) {
  if (!windows_.is_needed() || !saves_states()) return;
  for (int i = first_window(pages.in_tree); i < pages.in_tree; ++i) {
    const int32_t page = pages.state.pages()[static_cast<size_t>(i)];
    if (tree_.contains(page) && windows_.is_filled(page)) set_unsaved_state(page);
  }
}

// The number of leading pages that can be taken over, at most `pages_max`.
size_t PageCache::pages_with_windows(CachedPages& pages, std::span<const int32_t> tokens,
                                     size_t pages_max) const {
  const size_t own = pages.state.pages().size();
  size_t count = own, reusable = own;
  int32_t parent = count == 0 ? PrefixTree::kNone : pages.state.pages()[count - 1];
  int filled = pages.windows.begin;  // all pages from this one on have their window pages
  for (; count < pages_max; ++count) {
    parent = tree_.find(key_after(parent, pages, tokens, count));
    if (parent == PrefixTree::kNone) break;
    const int end = static_cast<int>(count) + 1;
    if (!windows_.is_filled(parent)) filled = end;
    if (filled <= first_window(end)) reusable = count + 1;
  }
  if (count > own) pages.matched = std::max(pages.matched, static_cast<int>(count));
  return reusable;
}

void PageCache::take_over_windows(CachedPages& pages) {
  pages.taken_over = pages.in_tree;
  use_windows(pages, {first_window(pages.in_tree), pages.in_tree});
  set_unsaved_windows(pages);  // another sequence may continue there again
}

// Before the sequence uses page `known` of the tree instead of its own one, which holds the same:
// one of their window pages remains. False if another sequence is loading that of `known`.
bool PageCache::replace_window(const CachedPages& pages, int32_t own, int32_t known, int index) {
  if (!windows_.is_needed() || windows_.of_page(own) == WindowCache::kNone) return true;
  const bool is_used = index >= pages.windows.begin && index < pages.windows.end;
  if (windows_.of_page(known) == WindowCache::kNone) {
    windows_.move(own, known);
    return true;
  }
  if (is_used) {
    if (!windows_.is_filled(known)) return false;
    windows_.hold(known);
    windows_.drop(own, WindowCache::Worth::kLittle);
  }
  windows_.detach(own);
  return true;
}

bool PageCache::begin_window_resume(CachedPages& pages, std::span<const int32_t> tokens,
                                    size_t pages_max) {
  const auto begin = static_cast<size_t>(pages.in_tree);
  int32_t page = begin == 0 ? PrefixTree::kNone : pages.state.pages()[begin - 1];
  int filled = pages.windows.begin;
  size_t best = begin;
  bool is_in_tree = true;
  for (size_t count = begin; count < pages_max; ++count) {
    if (is_in_tree) page = tree_.find(key_after(page, pages, tokens, count));
    is_in_tree = is_in_tree && page != PrefixTree::kNone;
    if (!is_in_tree && !disk_->contains(pages.keys[count])) break;
    const int end = static_cast<int>(count) + 1;
    const bool has_window =
        (is_in_tree && windows_.is_filled(page)) || disk_->contains_state(pages.keys[count]);
    if (!has_window) filled = end;
    if (filled <= first_window(end)) best = count + 1;
  }
  if (best == begin) return false;
  const int count = static_cast<int>(best), first = first_window(count);
  pages.resume = {.pages = count, .pages_before = pages.in_tree, .windows = {first, first}};
  return true;
}

// Since the resume began, another page may have taken a window page, or its file may have been
// forgotten. Others may be loading it.
bool PageCache::has_lost_window(const CachedPages& pages) const {
  for (int i = pages.resume.windows.end; i < pages.resume.pages; ++i) {
    const auto index = static_cast<size_t>(i);
    const bool is_there = windows_.of_page(pages.state.pages()[index]) != WindowCache::kNone;
    if (!is_there && (!disk_ || !disk_->contains_state(pages.keys[index]))) return true;
  }
  return false;
}

int PageCache::load_windows(CachedPages& pages, int most, PageOrders& orders) {
  pages.resume.has_lost_one = has_lost_window(pages);
  if (pages.resume.has_lost_one) return 0;
  // Those that are there must not be taken for those that are not: they become the last.
  for (int i = pages.resume.windows.end; i < pages.resume.pages; ++i) {
    const int32_t page = pages.state.pages()[static_cast<size_t>(i)];
    if (!windows_.is_filled(page)) continue;
    windows_.hold(page);
    windows_.drop(page, WindowCache::Worth::kEnd);
  }
  int ordered = 0;
  CachedPages::Windows& windows = pages.resume.windows;
  for (; windows.end < pages.resume.pages; ++windows.end) {
    const auto index = static_cast<size_t>(windows.end);
    const int32_t page = pages.state.pages()[index];
    if (windows_.is_filled(page)) {
      windows_.hold(page);
      continue;
    }
    const bool is_other_loading = windows_.of_page(page) != WindowCache::kNone;
    if (is_other_loading || ordered == most) break;
    take_window(page, true, orders);
    orders.state_loads.push_back({windows_.of_page(page), pages.keys[index]});
    ++ordered;
  }
  return ordered;
}

bool PageCache::end_window_loads(CachedPages& pages, bool are_loaded) {
  const CachedPages::Windows windows = pages.resume.windows;
  const auto numbers = pages.state.pages();
  // Another sequence may have made the tree forget the pages.
  if (!are_loaded || !tree_.contains(numbers.back())) return false;
  for (int i = windows.begin; i < windows.end; ++i) {
    windows_.set_filled(numbers[static_cast<size_t>(i)]);
  }
  if (windows.end < pages.resume.pages) return true;  // more are to come
  use_windows(pages, windows);
  for (int i = windows.begin; i < windows.end; ++i) {
    windows_.drop(numbers[static_cast<size_t>(i)], WindowCache::Worth::kEnd);  // used twice
  }
  pages.taken_over = pages.in_tree;
  pages.resume = {};
  return true;
}

// Those that were not loaded are nobody's.
void PageCache::drop_windows_to_resume(CachedPages& pages) {
  for (int i = pages.resume.windows.begin; i < pages.resume.windows.end; ++i) {
    const int32_t page = pages.state.pages()[static_cast<size_t>(i)];
    const bool is_filled = windows_.is_filled(page);
    leave_window(page);
    if (!is_filled) windows_.detach(page);
  }
  pages.resume.windows = {};
}

}  // namespace lockstep
