#include "sampling/choice_state.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sampling/candidate.h"

namespace lockstep {

bool ChoiceSetup::needs_tokens() const {
  const bool has_minimum = min_tokens > 0 && !stop_ids.empty();
  return has_minimum || history_needed(sampling) > 0 || sampling.presence_penalty != 0 ||
         sampling.frequency_penalty != 0;
}

ChoiceState::ChoiceState(ChoiceSetup setup, std::unique_ptr<TokenRules> rules)
    : setup_(std::move(setup)),
      rules_(std::move(rules)),
      keeps_tokens_(rules_ || setup_.needs_tokens()),
      answer_index_(static_cast<size_t>(setup_.answer_begin - setup_.begin)) {
  LOCKSTEP_CHECK(setup_.answer_begin >= setup_.begin && answer_index_ <= setup_.tokens.size());
  for (const int32_t token : std::exchange(setup_.tokens, {})) push(token);
}

void ChoiceState::push(int32_t token) {
  const size_t index = setup_.tokens.size();
  setup_.tokens.push_back(token);
  if (!rules_ || is_lost() || index < answer_index_) return;
  if (!rules_->accept(token)) lost_at_ = index;
}

bool ChoiceState::truncate(size_t size) {
  const size_t old_size = setup_.tokens.size();
  setup_.tokens.resize(size);
  if (!rules_) return true;
  const size_t end = std::min(old_size, lost_at_.value_or(old_size));
  const size_t begin = std::max(size, answer_index_);
  if (lost_at_ && size <= *lost_at_) lost_at_.reset();
  return begin >= end || rules_->take_back(end - begin);
}

bool ChoiceState::follow(int32_t position, int32_t token) {
  if (!keeps_tokens_) return true;
  // Before an answer's first choice there is no token if its prompt is not kept here.
  const int64_t place = int64_t{position} - setup_.begin;
  auto& tokens = setup_.tokens;
  if (place < -1 || place > static_cast<int64_t>(tokens.size())) return false;
  if (place < 0) return truncate(0);
  const auto index = static_cast<size_t>(place);
  if (index == tokens.size()) {
    push(token);
    return true;
  }
  if (tokens[index] == token) return index + 1 == tokens.size() || truncate(index + 1);
  if (!truncate(index)) return false;
  push(token);
  return true;
}

bool ChoiceState::forbids_stops() const {
  return setup_.tokens.size() < answer_index_ + static_cast<size_t>(setup_.min_tokens) &&
         !setup_.stop_ids.empty();
}

bool ChoiceState::changes_scores() const {
  const SamplingOptions& options = setup_.sampling;
  return !setup_.logit_bias.empty() || forbids_stops() || history_needed(options) > 0 ||
         options.presence_penalty != 0 || options.frequency_penalty != 0;
}

void ChoiceState::adjust(PenaltyScratch& scratch, const ScorePart& part) const {
  const SamplingOptions& options = setup_.sampling;
  add_bias(setup_.logit_bias, part);
  add_penalties(setup_.tokens, answer_index_, options, scratch, part);
  add_dry(setup_.tokens, setup_.dry_breakers, options, scratch, part);
  if (!forbids_stops()) return;
  for (const int32_t token : setup_.stop_ids) {
    if (float* score = part.find(token)) *score = kForbidden;
  }
}

void ChoiceSlots::set(int32_t slot, ChoiceSetup setup, std::unique_ptr<TokenRules> rules) {
  const auto index = static_cast<size_t>(slot);
  if (index >= states_.size()) states_.resize(index + 1);
  states_[index] = std::make_unique<ChoiceState>(std::move(setup), std::move(rules));
}

void ChoiceSlots::release(int32_t slot) {
  if (static_cast<size_t>(slot) < states_.size()) states_[static_cast<size_t>(slot)].reset();
}

ChoiceState* ChoiceSlots::find(int32_t slot) {
  const auto index = static_cast<size_t>(slot);
  return slot >= 0 && index < states_.size() ? states_[index].get() : nullptr;
}

}  // namespace lockstep
