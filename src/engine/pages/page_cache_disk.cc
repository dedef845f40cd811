// A PageCache's work for pages and snapshots on disk: which of them are there, which are saved, and
// how a sequence gets a state from there.
#include <algorithm>
#include <utility>

#include "engine/pages/page_cache.h"
#include "kernels/kernels.h"

namespace lockstep {

void PageCache::close_disk() {
  for (PageList* list : {&unsaved_, &unsaved_states_}) {
    while (list->front() != PageList::kNone) list->remove(list->front());
  }
  disk_ = nullptr;
}

int PageCache::count_on_disk(const CachedPages& pages, int positions_max) const {
  if (!disk_ || !pages.enters_tree) return 0;
  const auto begin = static_cast<size_t>(pages.in_tree);
  const auto end =
      std::min(static_cast<size_t>(positions_max / kPagePositions), begin + kPageLoadsMax);
  size_t next = begin;
  while (next < end && disk_->contains(pages.keys[next])) ++next;
  return static_cast<int>(next - begin);
}

std::optional<PageOrder> PageCache::take_unsaved() {
  while (unsaved_.front() != PageList::kNone && disk_->has_room()) {
    const int32_t page = unsaved_.front();
    unsaved_.remove(page);
    const PageKey& key = disk_key(page);
    // Another process may have saved it. After a failed try only this rank has its part.
    if (std::exchange(tried_, PageList::kNone) == page || !disk_->is_saved(key))
      return PageOrder{page, key};
  }
  return std::nullopt;
}

std::optional<StateOrder> PageCache::take_unsaved_state() {
  while (unsaved_states_.front() != PageList::kNone && disk_->has_room_for_state()) {
    const int32_t page = unsaved_states_.front();
    if (unsaved_.contains(page)) break;  // the pages up to the state come first
    unsaved_states_.remove(page);
    const PageKey& key = disk_key(page);
    if (std::exchange(tried_state_, PageList::kNone) == page || !disk_->contains_state(key)) {
      return StateOrder{state_of_page(page), key};
    }
  }
  return std::nullopt;
}

const PageKey& PageCache::disk_key(int32_t page) {
  const auto index = static_cast<size_t>(page);
  if (has_key_[index]) return keys_[index];
  const int32_t parent = tree_.parent(page);
  keys_[index] =
      page_key(parent == PrefixTree::kNone ? PageKey{} : disk_key(parent), tree_.tokens(page));
  has_key_[index] = true;
  return keys_[index];
}

void PageCache::set_saved(const CachedPages& pages, int begin) {
  if (!disk_) return;
  const auto loaded = pages.state.pages().first(static_cast<size_t>(pages.in_tree));
  for (const int32_t page : loaded.subspan(static_cast<size_t>(begin))) unsaved_.remove(page);
}

// Meanwhile the page may have been evicted and hold another text.
void PageCache::set_unsaved(const PageOrder& order) {
  const bool is_same =
      disk_ && tree_.contains(order.page) && keys_[static_cast<size_t>(order.page)] == order.key;
  if (!is_same) return;
  unsaved_.remove(order.page);
  unsaved_.push_front(order.page);
  tried_ = order.page;
}

void PageCache::set_unsaved(const StateOrder& order) {
  const int32_t page = page_of_state(order.state);
  if (page == StateCache::kNone || !tree_.contains(page)) return;
  if (windows_.is_needed() && !windows_.is_filled(page)) return;
  if (!saves_states() || disk_key(page) != order.key) return;
  unsaved_states_.remove(page);
  unsaved_states_.push_front(page);
  tried_state_ = page;
}

void PageCache::set_unsaved_state(int32_t page) {
  if (saves_states() && !unsaved_states_.contains(page)) unsaved_states_.push_back(page);
}

void PageCache::evict_state(int32_t page, PageOrders& orders) {
  const int32_t state = state_of_page(page);
  if (state == StateCache::kNone) return;
  const size_t most = states_.is_needed() ? kStateSavesMax : kWindowSavesMax;
  if (saves_states() && unsaved_states_.remove(page) && disk_->has_room_for_state() &&
      orders.state_saves.size() < most && !disk_->contains_state(disk_key(page))) {
    orders.state_saves.push_back({state, disk_key(page)});
  }
  states_.is_needed() ? states_.detach(page) : windows_.detach(page);
}

void PageCache::forget_on_disk(const PageKey& key) {
  if (disk_) disk_->forget(key);
}

void PageCache::forget_state_on_disk(const PageKey& key) {
  if (disk_) disk_->forget_state(key);
}

bool PageCache::begin_resume(CachedPages& pages, std::span<const int32_t> tokens,
                             int positions_max) {
  if (!disk_ || !pages.enters_tree) return false;
  const auto begin = static_cast<size_t>(pages.in_tree);
  const auto most = static_cast<size_t>(positions_max / kPagePositions);
  if (windows_.is_needed()) return begin_window_resume(pages, tokens, most);
  size_t count = follow(pages, tokens, most, disk_, [](int, int32_t) {});
  while (count > begin && !disk_->contains_state(pages.keys[count - 1])) --count;
  if (count == begin) return false;
  pages.resume = {.pages = static_cast<int>(count), .pages_before = pages.in_tree};
  return true;
}

int PageCache::share_resumed(CachedPages& pages, std::span<const int32_t> tokens) {
  share_from_tree(pages, tokens, static_cast<size_t>(pages.resume.pages));
  return pages.resume.pages - pages.in_tree;
}

void PageCache::load_state(CachedPages& pages, PageOrders& orders) {
  pages.resume.state = take_state(orders);
  orders.state_loads.push_back(
      {pages.resume.state, pages.keys[static_cast<size_t>(pages.resume.pages) - 1]});
}

bool PageCache::end_state_load(CachedPages& pages, bool is_loaded) {
  const int32_t state = std::exchange(pages.resume.state, StateCache::kNone);
  // Another sequence may have made the tree forget its pages.
  const bool is_whole = is_loaded && pages.in_tree == pages.resume.pages &&
                        tree_.contains(pages.state.pages().back());
  if (!is_whole) {
    states_.drop(state);
    return false;
  }
  states_.attach(pages.state.pages().back(), state);
  take_over_state(pages);
  pages.resume = {};
  return true;
}

void PageCache::give_up_resume(CachedPages& pages) {
  drop_windows_to_resume(pages);
  leave_pages(pages, static_cast<size_t>(pages.resume.pages_before));
  pages.resume = {};
}

}  // namespace lockstep
