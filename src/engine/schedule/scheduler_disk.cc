// A Scheduler's work with pages on disk: which steps load and save some, and the outcome.
#include <algorithm>

#include "engine/schedule/scheduler.h"
#include "kernels/kernels.h"

namespace lockstep {

bool Scheduler::plan_save(Step& step) {
  step.clear();
  const std::optional<PageOrder> save = pages_.has_disk() ? pages_.take_unsaved() : std::nullopt;
  if (!save) return false;
  step.pages.saves.push_back(*save);
  PlannedStep planned = take_spare();
  planned.save = save;
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
  auto room = static_cast<int>(std::clamp<size_t>(bytes / page_bytes, 1, kPageLoadsMax));
  for (const auto& sequence : running_) {
    if (!may_load(*sequence) || waits(*sequence, nullptr)) continue;
    const int found = pages_.count_on_disk(sequence->pages, sequence->prompt_size() - 1);
    const int count = std::min(found, room);
    sequence->waits_for_disk = found > 0 && count == 0;
    if (count == 0) continue;
    add_loads(*sequence, count, step, planned);
    room -= count;
  }
}

// All of its state is in the tree, and no step in flight continues it.
bool Scheduler::may_load(const Sequence& sequence) const {
  const int known = sequence.pages.in_tree;
  return sequence.unfed() > 1 && sequence.may_take_over() && sequence.steps_in_flight == 0 &&
         sequence.fed == known * kPagePositions &&
         sequence.pages.state.pages().size() == static_cast<size_t>(known);
}

// From here on the pages count as fed, but not as completed.
void Scheduler::add_loads(Sequence& sequence, int pages, Step& step, PlannedStep& planned) {
  const auto first = static_cast<size_t>(sequence.pages.in_tree);
  const int end = sequence.fed + pages * kPagePositions;
  pages_.grow(sequence.pages, end, step.pages);
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
                               .loads = pages});
  sequence.fed = end;
  sequence.is_loading = true;
  sequence.last_step = steps_planned_;
  ++sequence.steps_in_flight;
}

void Scheduler::complete_orders(const PlannedStep& step, PageOutcome moved) {
  if (moved.lacks_store()) pages_.close_disk();
  if (step.save && moved.saved == 0) {
    pages_.set_unsaved(*step.save);
    save_failed_ = true;
  }
  int loaded = std::max(0, moved.loaded);
  bool has_failed = false;
  for (const Planned& planned : step.sequences) {
    if (planned.loads == 0) continue;
    // The first page that some rank could not load; later ones were not tried.
    if (loaded < planned.loads && !std::exchange(has_failed, true)) {
      const CachedPages& pages = planned.sequence->pages;
      const int begin = planned.end / kPagePositions - planned.loads;
      pages_.forget_on_disk(pages.keys[static_cast<size_t>(begin + loaded)]);
    }
    loaded = complete_loads(planned, loaded);
  }
}

int Scheduler::complete_loads(const Planned& planned, int loaded) {
  Sequence& sequence = *planned.sequence;
  const int own = std::min(planned.loads, loaded);
  const int positions = own * kPagePositions;
  --sequence.steps_in_flight;
  sequence.is_loading = false;
  sequence.fed = sequence.completed = sequence.completed + positions;
  sequence.cached += positions;
  pages_.shrink(sequence.pages, sequence.fed);
  pages_.enter(sequence.pages, sequence.tokens, sequence.fed);
  if (sequence.is_cancelled) remove(sequence);
  return loaded - own;
}

}  // namespace lockstep
