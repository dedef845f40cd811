// A Scheduler's orders to a draft model, which keeps its own state of the sequences in the pages
// that they have. It sees the same tokens at the same positions, each once: right guesses too. Its
// state in a page is of use to all sequences that share the page.
#include <algorithm>

#include "engine/schedule/scheduler.h"
#include "model/load/sequence_state.h"

namespace lockstep {

// The tokens that it has not seen must fit in a batch, next to those of the others.
bool Scheduler::may_guess_by_model(const Sequence& sequence) const {
  const int unseen = static_cast<int>(sequence.tokens.size()) - sequence.drafted;
  return unseen <= limits_.tokens_max / kDraftingSequencesMax;
}

// With more sequences than are guessed for, the model rests, and catches up later.
void Scheduler::plan_model_pass(Step& step, PlannedStep& planned) {
  if (running_.size() > kDraftingSequencesMax) return;
  Batch& batch = step.drafts.pass.batch;
  for (const bool by_model : {true, false}) {  // guesses come first: they need all of their rows
    for (const Planned& each : planned.sequences) {
      Sequence& sequence = *each.sequence;
      if (each.is_load() || each.by_layer != by_model) continue;
      const int begin = sequence.drafted, room = limits_.tokens_max - batch.token_count();
      const int known = std::min(static_cast<int>(sequence.tokens.size()), sequence.fed);
      const int end = std::min(known, begin + room);
      if (begin >= end) continue;
      const auto list = static_cast<int32_t>(batch.page_lists.size());
      const auto pages = sequence.pages.state.pages();
      batch.page_lists.insert(batch.page_lists.end(), pages.begin(), pages.end());
      for (int position = begin; position < end; ++position) {
        batch.tokens.push_back(sequence.tokens[static_cast<size_t>(position)]);
        batch.positions.push_back(position);
        batch.list_offsets.push_back(list);
        step.drafts.pass.hidden_rows.push_back(0);  // it needs none
      }
      set_drafted(sequence, end);
      if (!each.by_layer) continue;
      batch.outputs.push_back(batch.token_count() - 1);
      step.drafts.guesses.push_back({each.drafts, each.first_guess()});
    }
  }
}

void Scheduler::set_drafted(Sequence& sequence, int end) {
  const auto pages = sequence.pages.state.pages();
  for (int begin = sequence.drafted; begin < end;) {
    const int index = begin / kPagePositions;
    begin = std::min(end, (index + 1) * kPagePositions);
    uint8_t& drafted = drafted_in_page_[static_cast<size_t>(pages[static_cast<size_t>(index)])];
    drafted = static_cast<uint8_t>(std::max<int>(drafted, begin - index * kPagePositions));
  }
  sequence.drafted = end;
}

// After pages were taken over.
void Scheduler::find_drafted(Sequence& sequence) const {
  if (!limits_.has_draft_model) return;
  const auto pages = sequence.pages.state.pages();
  while (sequence.drafted < sequence.fed) {
    const int index = sequence.drafted / kPagePositions;
    const int in_page = drafted_in_page_[static_cast<size_t>(pages[static_cast<size_t>(index)])];
    const int end = std::min(sequence.fed, index * kPagePositions + in_page);
    if (end <= sequence.drafted) return;
    sequence.drafted = end;
  }
}

void Scheduler::grow(Sequence& sequence, int length, Step& step) {
  const size_t before = sequence.pages.state.pages().size();
  pages_.grow(sequence.pages, length, step.pages);
  if (!limits_.has_draft_model) return;
  for (const int32_t page : sequence.pages.state.pages().subspan(before)) {
    drafted_in_page_[static_cast<size_t>(page)] = 0;
  }
}

}  // namespace lockstep
