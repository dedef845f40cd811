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
  for (const bool by_model : {true, false}) {  // guesses come first: they need all of their rows
    for (const Planned& each : planned.sequences) {
      if (each.is_load() || each.by_layer != by_model) continue;
      find_drafted(*each.sequence);
      const int rows = add_rows_for_model(*each.sequence, rows_for_model(each), step);
      if (!by_model || rows == 0) continue;
      step.drafts.pass.batch.outputs.push_back(step.drafts.pass.batch.token_count() - 1);
      step.drafts.guesses.push_back({each.drafts, each.first_guess()});
    }
  }
}

// For a guess all that it has not seen; a prompt's tokens as the model reads them. While tokens
// come without guesses, many at once, and only in every other step without prompts: steps of
// decoding alone, which are measured, go without.
int Scheduler::rows_for_model(const Planned& planned) const {
  const Sequence& sequence = *planned.sequence;
  const int unseen = static_cast<int>(sequence.tokens.size()) - sequence.drafted;
  if (planned.by_layer) return unseen;
  if (sequence.request.max_tokens <= 1) return 0;  // nothing will be guessed
  const int read = planned.end - planned.begin - planned.drafts;
  if (read > 1) return read;
  const int most = limits_.tokens_max / kDraftingSequencesMax;
  const bool is_due = 2 * unseen >= most && shape_.prompt_tokens == 0 && steps_planned_ % 2 == 0;
  return is_due ? most : 0;
}

// Returns how many there were. A token that the draft model lacks is another one to it, which makes
// its next guesses worse.
int Scheduler::add_rows_for_model(Sequence& sequence, int rows, Step& step) {
  Batch& batch = step.drafts.pass.batch;
  const int begin = sequence.drafted, room = limits_.tokens_max - batch.token_count();
  const int known = std::min(static_cast<int>(sequence.tokens.size()), sequence.fed);
  const int end = std::min(known, begin + std::min(rows, room));
  if (begin >= end) return 0;
  const int32_t list = add_page_list(sequence, batch);
  for (int position = begin; position < end; ++position) {
    const int32_t token = sequence.tokens[static_cast<size_t>(position)];
    batch.tokens.push_back(token < limits_.draft_vocab_size ? token : 0);
    batch.positions.push_back(position);
    batch.list_offsets.push_back(list);
    step.drafts.pass.hidden_rows.push_back(0);  // it needs none
  }
  set_drafted(sequence, end);
  return end - begin;
}

// A page whose first positions it has not seen, because another sequence left it, stays unseen.
void Scheduler::set_drafted(Sequence& sequence, int end) {
  const auto pages = sequence.pages.state.pages();
  for (int begin = sequence.drafted; begin < end;) {
    const int index = begin / kPagePositions, first = begin % kPagePositions;
    begin = std::min(end, (index + 1) * kPagePositions);
    uint8_t& drafted = drafted_in_page_[static_cast<size_t>(pages[static_cast<size_t>(index)])];
    if (first > drafted) continue;
    drafted = static_cast<uint8_t>(std::max<int>(drafted, begin - index * kPagePositions));
  }
  sequence.drafted = end;
}

// Pages that were taken over may have been seen.
void Scheduler::find_drafted(Sequence& sequence) const {
  const auto pages = sequence.pages.state.pages();
  while (sequence.drafted < sequence.fed) {
    const int index = sequence.drafted / kPagePositions;
    const int in_page = drafted_in_page_[static_cast<size_t>(pages[static_cast<size_t>(index)])];
    const int end = std::min(sequence.fed, index * kPagePositions + in_page);
    if (end <= sequence.drafted) return;
    sequence.drafted = end;
  }
}

}  // namespace lockstep
