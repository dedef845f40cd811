// A Scheduler's guesses of next tokens: how many, by whom, and the pass of the draft layer that
// makes some of them.
#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"
#include "engine/schedule/scheduler.h"
#include "model/options/run_limits.h"

namespace lockstep {

Status Scheduler::check_draft_logits(const GenerateRequest& request) const {
  if (!limits_.has_draft_layer) {
    return Error{ErrorCode::kUnsupported, "the model has no draft layer that lockstep can use"};
  }
  if (limits_.guesses_at_end()) {
    return Error{ErrorCode::kUnsupported,
                 "the draft layer's logits cannot be had from a pipeline: use one stage"};
  }
  if (limits_.draft_block == 0) return Ok{};
  const size_t needed = request.prompt.size() + static_cast<size_t>(request.max_tokens) +
                        static_cast<size_t>(limits_.draft_block);
  if (needed > static_cast<size_t>(limits_.context)) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the draft layer's logits need {} positions, the context holds {}",
                             needed, limits_.context)};
  }
  if (limits_.draft_block < limits_.tokens_max) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the draft layer's logits need batches of {} tokens, these have {}: "
                           "raise the number of tokens in a batch",
                           limits_.draft_block + 1, limits_.tokens_max)};
}

// The request's own guess comes first, then what its text repeats: both cost nothing.
void Scheduler::guess(Sequence& sequence, int room, bool may_draft, int decoding) {
  int& count = sequence.drafts.count;
  sequence.guesses_by_layer = false;
  count = expect(sequence, room);
  if (count > 0 || !may_draft) return;
  count = limits_.layer_guesses > 0 ? 0 : std::min(room, draft(sequence));
  if (count > 0) return;
  if (limits_.guesses_at_end()) {
    count = use_next_guesses(sequence, room);
  } else {
    count = std::min(room, guess_by_layer(sequence, decoding));
    std::fill_n(sequence.drafts.tokens.begin(), count, 0);  // places
  }
  sequence.guesses_by_layer = count > 0;
}

// The layer continues the last hidden state, which must be one of the last batch's.
bool Scheduler::may_guess(const Sequence& sequence) const {
  if (limits_.has_draft_model()) return may_guess_by_model(sequence);
  return std::any_of(undrafted_.begin(), undrafted_.end(), [&](const Undrafted& each) {
    return each.sequence == &sequence && each.end == sequence.fed;
  });
}

int Scheduler::guess_by_layer(const Sequence& sequence, int decoding) const {
  if (!may_guess(sequence)) return 0;
  int most = std::min(kLayerGuessesMax, guesses_max(sequence));
  if (limits_.draft_block > 0) {
    most = has_room_for_block(sequence) ? std::min(most, limits_.draft_block) : 0;
  }
  return sequence.request.draft_logits ? 0 : guesses_that_pay(sequence, decoding, most);
}

int Scheduler::guesses_that_pay(const Sequence& sequence, int decoding, int most) const {
  if (most <= 0) return 0;
  if (limits_.layer_guesses > 0) return std::min(limits_.layer_guesses, most);
  if (!budgets_.guesses) return most;
  return budgets_.guesses->guesses(decoding, sequence.layer_accuracy.share, most);
}

// As many as the next step can check, which has one chosen token more at least; the layer computes
// the position before each. None if they would not be used: while a prompt is fed, or after a step
// whose guesses cost nothing.
int Scheduler::wanted_guesses(const Sequence& sequence, int end) const {
  const auto size = static_cast<int>(sequence.tokens.size());
  const auto running = static_cast<int>(running_.size());
  if (!limits_.guesses_at_end() || running > kDraftingSequencesMax) return 0;
  const bool decode_others = std::all_of(running_.begin(), running_.end(), [&](const auto& other) {
    return other.get() == &sequence || other->decodes();
  });
  const bool has_free_guesses = sequence.drafts.count > 0 && !sequence.guesses_by_layer;
  if (end < size || !decode_others || has_free_guesses) return 0;
  const int most = std::min({kLayerGuessesMax, limits_.tokens_max / kDraftingSequencesMax,
                             sequence.left() - 2, limits_.context - end + 1, pages_.guesses_max()});
  return guesses_that_pay(sequence, running, most);
}

void Scheduler::plan_next_guesses(Step& step, const PlannedStep& planned) {
  for (const Planned& each : planned.sequences) {
    if (each.is_load()) continue;
    const std::vector<int32_t>& tokens = each.sequence->tokens;
    const auto end = static_cast<size_t>(each.end);
    step.next_guesses.push_back({.first_row = each.first_row,
                                 .rows = each.end - each.begin,
                                 .token_after = end < tokens.size() ? tokens[end] : -1,
                                 .count = each.wanted_guesses});
  }
}

void Scheduler::keep_next_guesses(Sequence& sequence, std::span<const int32_t> guesses) {
  const auto end =
      std::find_if(guesses.begin(), guesses.end(), [](int32_t one) { return one < 0; });
  std::copy(guesses.begin(), end, sequence.next_guesses.begin());
  sequence.next_count = static_cast<int>(end - guesses.begin());
}

int Scheduler::use_next_guesses(Sequence& sequence, int room) const {
  const int count = std::min({room, sequence.next_count, guesses_max(sequence)});
  if (count <= 0) return 0;
  std::copy_n(sequence.next_guesses.begin(), count, sequence.drafts.tokens.begin());
  return count;
}

// The number of guesses that can be checked: the choice after the last one must be wanted too, and
// every guess needs a position.
int Scheduler::guesses_max(const Sequence& sequence) const {
  const int size = static_cast<int>(sequence.tokens.size());
  return std::min({sequence.left() - 1, limits_.context - size, pages_.guesses_max()});
}

// A block begins at the first position that is not computed.
bool Scheduler::has_room_for_block(const Sequence& sequence) const {
  return sequence.fed + limits_.draft_block <= limits_.context &&
         kDraftingSequencesMax * (limits_.draft_block + 1) <= limits_.tokens_max;
}

int Scheduler::positions_needed(const Sequence& sequence, int end, int wanted_guesses) const {
  if (limits_.draft_block == 0) return end + std::max(0, wanted_guesses - 1);
  if (sequence.request.draft_logits) return end + limits_.draft_block;
  return sequence.guesses_by_layer ? std::max(end, sequence.fed + limits_.draft_block) : end;
}

int Scheduler::draft(Sequence& sequence) const {
  Drafts& drafts = sequence.drafts;
  const int most =
      std::min({drafts.size, sequence.request.draft_tokens, kDraftTokensMax, guesses_max(sequence),
                limits_.tokens_max / kDraftingSequencesMax - 1});
  if (most <= 0) return 0;
  if (drafts.pause > 0) {
    --drafts.pause;
    return 0;
  }
  return look_up(sequence.tokens, std::span(drafts.tokens).first(static_cast<size_t>(most)));
}

// None until the last kGuessTokensMax + 1 tokens were as expected, or all if there are fewer: after
// a wrong one the usual steps go on for that long.
int Scheduler::expect(Sequence& sequence, int room) const {
  const GenerateRequest& request = sequence.request;
  const auto size = static_cast<int>(sequence.tokens.size());
  const int prompt = sequence.prompt_size() - request.resumed_tokens;
  const int answered = size - prompt;
  const int expected = static_cast<int>(request.guess.size());
  if (answered >= expected) return 0;
  const int compared = std::min(answered, kGuessTokensMax + 1);
  const auto guess = request.guess.begin() + answered;
  if (!std::equal(guess - compared, guess, sequence.tokens.end() - compared)) return 0;
  const int count = std::min({room, kGuessTokensMax, guesses_max(sequence), expected - answered});
  if (count <= 0) return 0;
  std::copy_n(guess, count, sequence.drafts.tokens.begin());
  return count;
}

// The layer sees every token of the last batch whose successor is known, also those of sequences
// that do not take part in this step: their hidden states are gone with the next batch.
void Scheduler::plan_draft_pass(Step& step, PlannedStep& planned) {
  Batch& batch = step.drafts.pass.batch;
  for (const Undrafted& each : undrafted_) {
    Sequence& sequence = *each.sequence;
    if (sequence.is_cancelled) continue;
    const int32_t list = add_page_list(sequence, batch);
    for (int position = each.begin; position < each.end; ++position) {
      if (sequence.request.draft_logits) {
        batch.outputs.push_back(batch.token_count());
        step.drafts.guesses.push_back({});
        planned.draft_rows.insert(planned.draft_rows.end(),
                                  static_cast<size_t>(std::max(1, limits_.draft_block)),
                                  sequence.id);
      }
      step.drafts.pass.hidden_rows.push_back(each.first_row + position - each.begin);
      batch.tokens.push_back(sequence.tokens[static_cast<size_t>(position) + 1]);
      batch.positions.push_back(position);
      batch.list_offsets.push_back(list);
    }
    const auto own = std::find_if(
        planned.sequences.begin(), planned.sequences.end(),
        [&](const Planned& other) { return other.sequence == &sequence && other.by_layer; });
    if (own == planned.sequences.end()) continue;
    batch.outputs.push_back(batch.token_count() - 1);
    step.drafts.guesses.push_back({own->drafts, own->first_guess()});
  }
  undrafted_.clear();
}

// Before the step's choices are compared with the guesses.
void Scheduler::take_drafted(const PlannedStep& step, DraftOutcome drafted,
                             const EventSink& events) {
  LOCKSTEP_CHECK(drafted.logits.size() == step.draft_rows.size());
  for (size_t i = 0; i < step.draft_rows.size(); ++i) {
    const auto wants = [&](const auto& each) {
      return each->id == step.draft_rows[i] && !each->is_cancelled;
    };
    if (std::none_of(running_.begin(), running_.end(), wants)) continue;
    events({step.draft_rows[i], RequestEvent::Row{drafted.logits[i], true}});
  }
  take_guesses(step, drafted.tokens);
}

void Scheduler::take_guesses(std::span<const int32_t> batch) {
  LOCKSTEP_CHECK(!in_flight_.empty());
  take_guesses(in_flight_.back(), batch);
}

void Scheduler::take_guesses(const PlannedStep& step, std::span<const int32_t> batch) {
  for (const Planned& planned : step.sequences) {
    if (!planned.by_layer) continue;
    const auto made = batch.subspan(static_cast<size_t>(planned.first_guess()),
                                    static_cast<size_t>(planned.drafts));
    std::copy(made.begin(), made.end(), planned.sequence->drafts.tokens.begin());
  }
}

}  // namespace lockstep
