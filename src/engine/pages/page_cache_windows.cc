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
  if (loser != WindowCache::kNone) evict_state(loser, orders);
  windows_.take(page, is_loading);
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

// The last place up to which all pages are there, or on `disk`, with the window pages that a
// sequence needs to go on, and all pages that are there.
PageCache::Places PageCache::window_places(const CachedPages& pages,
                                           std::span<const int32_t> tokens, size_t pages_max,
                                           const PageDisk* disk) const {
  Places places{.last = pages.in_tree};
  int filled = pages.windows.begin;  // all pages from this one on have their window pages
  const size_t all = follow(pages, tokens, pages_max, disk, [&](int index, int32_t page) {
    const bool is_in_memory = page != PrefixTree::kNone && windows_.is_filled(page);
    const bool is_on_disk =
        disk != nullptr && disk->contains_state(pages.keys[static_cast<size_t>(index)]);
    if (!is_in_memory && !is_on_disk) filled = index + 1;
    if (filled <= first_window(index + 1)) places.last = index + 1;
  });
  places.all = static_cast<int>(all);
  return places;
}

// The number of leading pages that can be taken over, at most `pages_max`.
size_t PageCache::pages_with_windows(CachedPages& pages, std::span<const int32_t> tokens,
                                     size_t pages_max) const {
  const Places places = window_places(pages, tokens, pages_max, nullptr);
  if (places.all > pages.in_tree) pages.matched = std::max(pages.matched, places.all);
  return static_cast<size_t>(places.last);
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
  const int last = window_places(pages, tokens, pages_max, disk_).last;
  if (last == pages.in_tree) return false;
  const int first = first_window(last);
  pages.resume = {.pages = last, .pages_before = pages.in_tree, .windows = {first, first}};
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
