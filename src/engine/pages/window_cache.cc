#include "engine/pages/window_cache.h"

#include "base/check.h"
#include "model/load/sequence_state.h"

namespace lockstep {

WindowCache::WindowCache(int windows, int reach, int pages)
    : reach_(reach),
      windows_of_pages_(static_cast<size_t>(windows > 0 ? pages : 0), kNone),
      pages_of_windows_(static_cast<size_t>(windows), kNone),
      uses_(static_cast<size_t>(windows)),
      is_loading_(static_cast<size_t>(windows)),
      unused_{PageList(windows), PageList(windows), PageList(windows)} {
  for (int window = 0; window < windows; ++window) unused_[0].push_back(window);
}

int WindowCache::first_page(int position) const {
  return first_window_page(position, reach_);
}

bool WindowCache::is_filled(int32_t page) const {
  const int32_t window = of_page(page);
  return window != kNone && !is_loading_[static_cast<size_t>(window)];
}

int WindowCache::unused() const {
  int all = 0;
  for (const PageList& list : unused_) all += list.size();
  return all;
}

int32_t WindowCache::next() const {
  for (const PageList& list : unused_) {
    if (list.front() != PageList::kNone) return list.front();
  }
  LOCKSTEP_CHECK(false);  // there are enough for all running sequences
  return kNone;
}

void WindowCache::remove_unused(int32_t window) {
  for (PageList& list : unused_) {
    if (list.remove(window)) return;
  }
}

int32_t WindowCache::next_to_lose() const {
  return page_of(next());
}

void WindowCache::take(int32_t page, bool is_loading) {
  LOCKSTEP_CHECK(of_page(page) == kNone);
  const int32_t window = next();
  LOCKSTEP_CHECK(page_of(window) == kNone);
  remove_unused(window);
  pages_of_windows_[static_cast<size_t>(window)] = page;
  windows_of_pages_[static_cast<size_t>(page)] = window;
  is_loading_[static_cast<size_t>(window)] = is_loading;
  uses(window) = 1;
}

void WindowCache::set_filled(int32_t page) {
  is_loading_[static_cast<size_t>(of_page(page))] = false;
}

void WindowCache::hold(int32_t page) {
  const int32_t window = of_page(page);
  if (uses(window)++ == 0) remove_unused(window);
}

void WindowCache::drop(int32_t page, Worth worth) {
  const int32_t window = of_page(page);
  LOCKSTEP_CHECK(uses(window) > 0);
  if (--uses(window) == 0) unused_[static_cast<size_t>(worth)].push_back(window);
}

void WindowCache::detach(int32_t page) {
  const int32_t window = of_page(page);
  if (window == kNone) return;
  LOCKSTEP_CHECK(uses(window) == 0);
  remove_unused(window);
  pages_of_windows_[static_cast<size_t>(window)] = kNone;
  windows_of_pages_[static_cast<size_t>(page)] = kNone;
  unused_.front().push_front(window);
}

void WindowCache::move(int32_t from, int32_t to) {
  const int32_t window = of_page(from);
  LOCKSTEP_CHECK(window != kNone && of_page(to) == kNone);
  windows_of_pages_[static_cast<size_t>(from)] = kNone;
  windows_of_pages_[static_cast<size_t>(to)] = window;
  pages_of_windows_[static_cast<size_t>(window)] = to;
}

}  // namespace lockstep
