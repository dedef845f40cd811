// A Scheduler's work with pages on disk: which steps load and save some, and the outcome.
#include <algorithm>

#include "engine/schedule/scheduler.h"
#include "kernels/kernels.h"

namespace lockstep {

bool Scheduler::plan_save(Step& step) {
  step.clear();
  if (!pages_.has_disk()) return false;
  PlannedStep planned = take_spare();
  planned.state_save = pages_.take_unsaved_state();
  if (!planned.state_save) planned.save = pages_.take_unsaved();
  // The pages before it may turn out to be on disk.
  if (!planned.save && !planned.state_save) planned.state_save = pages_.take_unsaved_state();
  if (planned.state_save) step.pages.state_saves.push_back(*planned.state_save);
  if (planned.save) step.pages.saves.push_back(*planned.save);
  if (step.pages.empty()) {
    spare_.push_back(std::move(planned));
    return false;
  }
  shape_ = {};
  ++steps_planned_;
  in_flight_.push_back(std::move(planned));
  return true;
}

// In order of admission. The first of several copies of a prompt loads, and the others wait for its
// pages just as they wait for computed ones.
void Scheduler::plan_loads(bool is_beside, Step& step, PlannedStep& planned) {
  for (const auto& sequence : running_) sequence->waits_for_disk = false;
  if (!pages_.has_disk()) return;
  const size_t bytes = is_beside ? kLoadBytesBesideMax : kLoadBytesMax;
  const size_t page_bytes = std::max<size_t>(pages_.disk_page_bytes(), 1);
  const size_t state_bytes = std::max<size_t>(pages_.disk_state_bytes(), 1);
  LoadRoom room{
      .pages = static_cast<int>(std::clamp<size_t>(bytes / page_bytes, 1, kPageLoadsMax)),
      .windows = static_cast<int>(std::clamp<size_t>(bytes / state_bytes, 1, kWindowLoadsMax))};
  for (const auto& sequence : running_) {
    if (!may_load(*sequence)) continue;
    if (pages_.has_places()) {
      plan_resume(*sequence, room, step, planned);
    } else {
      plan_page_loads(*sequence, room.pages, step, planned);
    }
  }
}

// All of its state is in the tree, and no step in flight continues it.
bool Scheduler::may_load(const Sequence& sequence) const {
  if (sequence.steps_in_flight > 0 || !sequence.may_take_over()) return false;
  if (sequence.is_loading) return true;  // the rest
  const int known = sequence.pages.in_tree;
  return sequence.unfed() > 1 && sequence.fed == known * kPagePositions &&
         sequence.pages.state.pages().size() == static_cast<size_t>(known) &&
         !waits(sequence, nullptr);
}

// From here on the pages count as fed, but not as completed.
void Scheduler::plan_page_loads(Sequence& sequence, int& room, Step& step, PlannedStep& planned) {
  const int found = pages_.count_on_disk(sequence.pages, sequence.prompt_size() - 1);
  const int count = std::min(found, room);
  sequence.waits_for_disk = found > 0 && count == 0;
  if (count == 0) return;
  room -= count;
  sequence.fed += count * kPagePositions;
  add_loads(sequence, count, step, planned);
}

// The same for all pages up to a state, or to a place whose window pages are there.
void Scheduler::plan_resume(Sequence& sequence, LoadRoom& room, Step& step, PlannedStep& planned) {
  CachedPages& pages = sequence.pages;
  const auto may_load_state = [&] {
    return !limits_.has_windows() && step.pages.state_loads.size() < kStateLoadsMax;
  };
  if (!sequence.is_loading) {
    if (!pages_.begin_resume(pages, sequence.tokens, sequence.prompt_size() - 1)) return;
    sequence.is_loading = true;
    sequence.fed = pages.resume.pages * kPagePositions;
  }
  const int missing = pages_.share_resumed(pages, sequence.tokens);
  if (limits_.has_windows() && missing == 0) {
    return plan_window_loads(sequence, room.windows, step, planned);
  }
  const int count = std::min(missing, room.pages);
  const bool loads_state = count == missing && may_load_state();
  if (count == 0 && !loads_state) return;  // others load in this step
  room.pages -= count;
  add_loads(sequence, count, step, planned);
  if (!loads_state) return;
  pages_.load_state(pages, step.pages);
  planned.sequences.back().state_loads = 1;
}

// Once all pages are there. Others may be loading some of the window pages.
void Scheduler::plan_window_loads(Sequence& sequence, int& room, Step& step, PlannedStep& planned) {
  if (pages_.has_lost_window(sequence.pages)) return end_resume(sequence, false, false);
  const int count = pages_.load_windows(sequence.pages, room, step.pages);
  if (count > 0) {
    room -= count;
    add_loads(sequence, 0, step, planned);
    planned.sequences.back().state_loads = count;
  } else if (pages_.has_windows_to_resume(sequence.pages)) {
    end_resume(sequence, true, true);
  }
}

void Scheduler::add_loads(Sequence& sequence, int pages, Step& step, PlannedStep& planned) {
  const auto first = static_cast<size_t>(sequence.pages.in_tree);
  const int end = (sequence.pages.in_tree + pages) * kPagePositions;
  grow(sequence, end, true, step);
  const auto numbers = sequence.pages.state.pages();
  for (size_t i = first; i < numbers.size(); ++i) {
    step.pages.loads.push_back({numbers[i], sequence.pages.keys[i]});
  }
  planned.sequences.push_back({.sequence = &sequence,
                               .begin = end,
                               .first_row = 0,
                               .end = end,
                               .outputs = 0,
                               .hidden_outputs = 0,
                               .drafts = 0,
                               .by_layer = false,
                               .loads = pages});
  sequence.is_loading = true;
  sequence.last_step = steps_planned_;
  ++sequence.steps_in_flight;
}

void Scheduler::complete_orders(const PlannedStep& step, PageOutcome moved) {
  if (moved.lacks_store()) close_disk();
  const bool has_failed = (step.save || step.state_save) && moved.saved == 0;
  if (has_failed && step.save) pages_.set_unsaved(*step.save);
  if (has_failed && step.state_save) pages_.set_unsaved(*step.state_save);
  save_failed_ = save_failed_ || has_failed;
  complete_loads(step, std::max(0, moved.loaded));
}

// Sequences whose loads are in flight follow when these are completed.
void Scheduler::close_disk() {
  pages_.close_disk();
  for (const auto& sequence : running_) {
    const bool waits_for_more = sequence->is_loading && sequence->steps_in_flight == 0;
    if (waits_for_more) end_resume(*sequence, false, false);
  }
}

// Forgets the first page or state that some rank could not load; later ones were not tried.
void Scheduler::complete_loads(const PlannedStep& step, int loaded) {
  int all_pages = 0;
  for (const Planned& planned : step.sequences) all_pages += planned.loads;
  int pages_left = std::min(loaded, all_pages), states_left = loaded - pages_left;
  bool has_failed = false;
  for (const Planned& planned : step.sequences) {
    if (!planned.is_load()) continue;
    Sequence& sequence = *planned.sequence;
    const CachedPages& pages = sequence.pages;
    const int own = std::min(planned.loads, pages_left);
    const int own_states = std::min(planned.state_loads, states_left);
    const bool is_whole = own == planned.loads && own_states == planned.state_loads;
    if (!is_whole && !std::exchange(has_failed, true)) {
      forget_on_disk(pages, pages.in_tree + own, own < planned.loads);
    }
    pages_left -= own;
    states_left -= own_states;
    --sequence.steps_in_flight;
    end_loads(sequence, own);
    if (pages_.has_places()) end_resume(sequence, is_whole, planned.state_loads > 0);
    if (sequence.is_cancelled) remove(sequence);
  }
}

// `next`: the first page that was not loaded, which some rank lacks if `is_missing`. With recurrent
// layers the state after it is of no use, as window pages are, and all pages up to there will be
// computed again: they are forgotten too, so that ranks that lack more of them save them again.
void Scheduler::forget_on_disk(const CachedPages& pages, int next, bool is_missing) {
  const int end = pages.resume.pages;
  const int first = limits_.has_windows() ? pages.resume.windows.begin : end - 1;
  for (int page = std::max(first, 0); page < end; ++page) {
    pages_.forget_state_on_disk(pages.keys[static_cast<size_t>(page)]);
  }
  if (!is_missing) return;
  for (int page = next; page < std::max(next + 1, end); ++page) {
    pages_.forget_on_disk(pages.keys[static_cast<size_t>(page)]);
  }
}

// The loaded pages enter the tree. Without states and window pages to load they are computed now.
void Scheduler::end_loads(Sequence& sequence, int pages) {
  const int begin = sequence.pages.in_tree;
  const int end = (begin + pages) * kPagePositions;
  pages_.shrink(sequence.pages, end);
  pages_.enter(sequence.pages, sequence.tokens, end);
  pages_.set_saved(sequence.pages, begin);
  if (pages_.has_places()) return;
  sequence.is_loading = false;
  sequence.fed = sequence.completed = end;
  sequence.cached += pages * kPagePositions;
}

void Scheduler::end_resume(Sequence& sequence, bool is_whole, bool has_state) {
  CachedPages& pages = sequence.pages;
  const int before = pages.resume.pages_before * kPagePositions;
  const bool has_windows = limits_.has_windows();
  const bool has_all = !has_windows || pages_.has_windows_to_resume(pages);
  const bool is_sound = has_state && (has_windows ? pages_.end_window_loads(pages, is_whole)
                                                  : pages_.end_state_load(pages, is_whole));
  const bool continues = is_sound && has_all;
  const bool can_go_on =
      is_whole && (is_sound || !has_state) && !continues && pages.enters_tree && pages_.has_disk();
  if (can_go_on) return;  // more are to come
  if (!continues) pages_.give_up_resume(pages);
  sequence.is_loading = false;
  sequence.fed = sequence.completed = continues ? pages.in_tree * kPagePositions : before;
  sequence.cached += sequence.completed - before;
}

}  // namespace lockstep
