// A PageCache's work for models with recurrent layers: which states a sequence's tokens read and
// write, and which become snapshots.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/pages/page_cache.h"
#include "kernels/kernels.h"

namespace lockstep {
namespace {

// The next turn of a conversation begins with all of this prompt, and with the answer; other
// requests with a part of it. So snapshots are made where the prompt's last whole page ends, and
// then at each page; before that at intervals.
bool is_at_end(int length, int prompt) {
  const int last_page = (prompt - 1) / kPagePositions * kPagePositions;
  return length > 0 && length >= last_page;
}

bool is_snapshot(int length, int prompt) {
  if (length % kPagePositions != 0) return false;
  return length % kSnapshotPositions == 0 || is_at_end(length, prompt);
}

}  // namespace

int32_t PageCache::take_state(PageOrders& orders) {
  if (states_.free_states() == 0) evict_state(states_.oldest_snapshot(), orders);
  return states_.take();
}

void PageCache::drop_snapshot(int32_t page) {
  if (saves_states()) unsaved_states_.remove(page);
  states_.detach(page);
}

void PageCache::plan_states(CachedPages& pages, const PlannedPositions& planned, Batch& batch,
                            PageOrders& orders) {
  if (!states_.is_needed()) return;
  for (int position = planned.begin; position < planned.end; ++position) {
    const int32_t from = pages.recurrent;
    const bool is_guess = position >= planned.known;
    if (from == StateCache::kNone || is_guess || states_.is_shared(from)) {
      pages.recurrent = take_state(orders);
      if (is_guess) {
        states_.lend();
        pages.guessed.push_back(from);
      } else if (from != StateCache::kNone) {
        pages.read.push_back({position + 1, from});
      }
    }
    batch.states_from.push_back(from);
    batch.states_to.push_back(pages.recurrent);
    if (!is_guess) plan_snapshot(pages, position + 1);
  }
}

void PageCache::plan_snapshot(CachedPages& pages, int length) {
  if (!pages.enters_tree || !is_snapshot(length, pages.prompt) || states_.spare() <= 0) return;
  states_.lend();
  states_.hold(pages.recurrent);
  pages.snapshots.push_back({length, pages.recurrent});
}

void PageCache::end_guesses(CachedPages& pages, int right) {
  if (pages.guessed.empty()) return;
  std::vector<int32_t>& guessed = pages.guessed;  // the states before each guess
  const auto kept = static_cast<size_t>(right);
  LOCKSTEP_CHECK(kept <= guessed.size());
  states_.return_lent(static_cast<int>(guessed.size()));
  guessed.push_back(pages.recurrent);
  pages.recurrent = guessed[kept];
  for (size_t i = 0; i < guessed.size(); ++i) {
    if (i != kept) states_.drop(guessed[i]);
  }
  guessed.clear();
}

void PageCache::enter_states(CachedPages& pages, int length) {
  const auto is_read = [&](const CachedPages::StateAt& each) { return each.length <= length; };
  for (const CachedPages::StateAt& each : pages.read) {
    if (is_read(each)) states_.drop(each.state);
  }
  std::erase_if(pages.read, is_read);
  const int in_tree = pages.in_tree * kPagePositions;
  const auto has_entered = [&](const CachedPages::StateAt& each) {
    return each.length <= in_tree || (!pages.enters_tree && each.length <= length);
  };
  for (const CachedPages::StateAt& each : pages.snapshots) {
    if (!has_entered(each)) continue;
    states_.return_lent();
    each.length <= in_tree ? enter_snapshot(pages, each) : states_.drop(each.state);
  }
  std::erase_if(pages.snapshots, has_entered);
}

// A snapshot of an answer replaces the one before, unless that is one at an interval. Those at
// intervals are not saved: there is at least one nearer the end.
void PageCache::enter_snapshot(CachedPages& pages, const CachedPages::StateAt& snapshot) {
  const auto page_at = [&](int length) {
    return pages.state.pages()[static_cast<size_t>(length / kPagePositions - 1)];
  };
  states_.attach(page_at(snapshot.length), snapshot.state);
  if (is_at_end(snapshot.length, pages.prompt)) set_unsaved_state(page_at(snapshot.length));
  const int before = std::exchange(pages.latest_snapshot, snapshot.length);
  if (before <= pages.prompt) return;
  if (saves_states()) unsaved_states_.remove(page_at(before));
  if (before % kSnapshotPositions == 0) return;
  const int32_t state = states_.of_page(page_at(before));
  if (state != StateCache::kNone && !states_.is_shared(state)) drop_snapshot(page_at(before));
}

void PageCache::release_states(CachedPages& pages) {
  if (!states_.is_needed()) return;
  const auto lent = pages.snapshots.size() + pages.guessed.size();
  states_.return_lent(static_cast<int>(lent));
  for (const CachedPages::StateAt& each : pages.read) states_.drop(each.state);
  for (const CachedPages::StateAt& each : pages.snapshots) states_.drop(each.state);
  for (const int32_t state : pages.guessed) {
    if (state != StateCache::kNone) states_.drop(state);
  }
  if (pages.recurrent != StateCache::kNone) states_.drop(pages.recurrent);
  pages.read.clear();
  pages.snapshots.clear();
  pages.guessed.clear();
  pages.recurrent = StateCache::kNone;
}

// The number of leading pages that can be taken over, at most `pages_max`: a recurrent state
// continues only where there is a snapshot.
size_t PageCache::pages_with_state(const CachedPages& pages, std::span<const int32_t> tokens,
                                   size_t pages_max) const {
  auto reusable = static_cast<size_t>(pages.in_tree);
  follow(pages, tokens, pages_max, nullptr, [&](int index, int32_t page) {
    if (states_.of_page(page) != StateCache::kNone) reusable = static_cast<size_t>(index) + 1;
  });
  return reusable;
}

void PageCache::take_over_state(CachedPages& pages) {
  const int32_t state = states_.of_page(pages.state.pages().back());
  states_.hold(state);
  states_.touch(state);
  set_unsaved_state(pages.state.pages().back());  // another sequence may continue it again
  if (pages.recurrent != StateCache::kNone) states_.drop(pages.recurrent);
  pages.recurrent = state;
}

}  // namespace lockstep
