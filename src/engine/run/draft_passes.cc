#include "engine/run/draft_passes.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

// The choices of a step, by row of its batch; asked in ascending order.
class ChoiceOfRow {
 public:
  ChoiceOfRow(const Step& step, std::span<const SampledToken> choices)
      : step_(step), choices_(choices) {}

  // Null: no token is wanted after the row.
  const SampledToken* operator()(int32_t row) {
    const std::vector<int32_t>& outputs = step_.batch.outputs;
    while (at_ < outputs.size() && outputs[at_] < row) ++at_;
    const bool is_chosen =
        at_ < outputs.size() && outputs[at_] == row && step_.requests[at_].wants_token;
    return is_chosen ? &choices_[at_] : nullptr;
  }

 private:
  const Step& step_;
  std::span<const SampledToken> choices_;
  size_t at_ = 0;
};

}  // namespace

Result<DraftOutcome> DraftPasses::run(Step& step) {
  logits_.clear();
  TRY(check(step.drafts));
  TRY(guesses_blocks() ? guess_blocks(step) : guess_in_turn(step.drafts, step.batch.tokens));
  for (size_t i = 0; i < step.requests.size(); ++i) {
    step.requests[i].previous_token = step.batch.tokens[static_cast<size_t>(step.batch.outputs[i])];
  }
  return DraftOutcome{.tokens = step.batch.tokens, .logits = logits_};
}

// A draft model's logits are of no use to anybody.
Status DraftPasses::check(const DraftOrders& orders) const {
  const int least = draft_model_ ? 1 : 0;
  const int most = guesses_blocks() ? model_.config().draft_block->size : kDraftTokensMax;
  const bool is_sound =
      std::all_of(orders.guesses.begin(), orders.guesses.end(),
                  [&](const auto& each) { return each.count >= least && each.count <= most; });
  if (is_sound) return Ok{};
  return Error{ErrorCode::kCorrupt, "rank 0 wants guesses that cannot be made"};
}

Status DraftPasses::guess_in_turn(const DraftOrders& orders, std::span<int32_t> tokens) {
  ModelOutputs outputs = TRY(compute(orders.pass));
  continued_.clear();
  last_rows_.clear();
  for (size_t i = 0; i < orders.guesses.size(); ++i) {
    continued_.push_back(i);
    last_rows_.push_back(orders.pass.batch.outputs[i]);
  }
  const auto wants_logits = [](const DraftOrders::Guesses& each) { return each.count == 0; };
  if (std::any_of(orders.guesses.begin(), orders.guesses.end(), wants_logits)) {
    TRY(keep_logits(outputs, orders));
  }
  for (int made = 0; !continued_.empty();) {
    TRY(choose(outputs, continued_.size()));
    for (size_t i = 0; i < continued_.size(); ++i) {
      const DraftOrders::Guesses& each = orders.guesses[continued_[i]];
      const auto at = static_cast<size_t>(each.at) + static_cast<size_t>(made);
      if (made < each.count) tokens[at] = best_[i].token;
    }
    continue_guesses(orders, ++made);
    if (!continued_.empty()) outputs = TRY(compute(next_));
  }
  return Ok{};
}

// The choice after a row says whether the next row's token, a guess, is right; without a choice it
// is known to be.
void DraftPasses::find_right_rows(const Step& step, std::span<const SampledToken> choices) {
  ChoiceOfRow choice_of(step, choices);
  for (size_t i = 0; i < right_rows_.size(); ++i) {
    const NextGuesses& own = step.next_guesses[i];
    RightRows& right = right_rows_[i];
    for (int32_t row = own.first_row, end = row + own.rows; row < end; ++row) {
      const bool is_last = row + 1 == end;
      const int32_t known =
          is_last ? own.token_after : step.batch.tokens[static_cast<size_t>(row) + 1];
      const SampledToken* choice = choice_of(row);
      const int32_t after = choice ? choice->token : known;
      if (after < 0) break;
      right = {right.count + 1, after};
      if (after != known) break;
    }
  }
}

// Only rank 0 has the choices.
Status DraftPasses::agree_on_rows(const Step& step, std::span<const SampledToken> choices) {
  right_rows_.assign(step.next_guesses.size(), {});
  if (group_.rank() == 0) find_right_rows(step, choices);
  if (group_.size() == 1) return Ok{};
  const auto bytes = std::as_writable_bytes(std::span(right_rows_));
  message_.assign(bytes.begin(), bytes.end());
  TRY(group_.broadcast(0, message_, bytes.size()));
  if (message_.size() != bytes.size()) {
    return Error{ErrorCode::kCorrupt,
                 "a rank of the last stage sent other rows than were computed"};
  }
  std::memcpy(bytes.data(), message_.data(), bytes.size());
  return Ok{};
}

Result<std::span<const int32_t>> DraftPasses::guess_next(const Step& step,
                                                         std::span<const SampledToken> choices) {
  TRY(agree_on_rows(step, choices));
  after_choices_.clear();
  Batch& batch = after_choices_.pass.batch;
  batch.page_lists = step.batch.page_lists;
  int32_t guesses = 0;
  for (size_t i = 0; i < right_rows_.size(); ++i) {
    const NextGuesses& own = step.next_guesses[i];
    const RightRows right = right_rows_[i];
    if (right.count < 0 || right.count > own.rows) {
      return Error{ErrorCode::kCorrupt, "a rank of the last stage sent rows that are not there"};
    }
    const int32_t end = own.first_row + right.count;
    for (int32_t row = own.first_row; row < end; ++row) {
      const auto at = static_cast<size_t>(row);
      batch.tokens.push_back(row + 1 < end ? step.batch.tokens[at + 1] : right.token_after);
      batch.positions.push_back(step.batch.positions[at]);
      batch.list_offsets.push_back(step.batch.list_offsets[at]);
      after_choices_.pass.hidden_rows.push_back(row);
    }
    if (own.count > 0 && right.count > 0) {
      batch.outputs.push_back(batch.token_count() - 1);
      after_choices_.guesses.push_back({own.count, guesses});
    }
    guesses += own.count;
  }
  guesses_.assign(static_cast<size_t>(guesses), -1);
  if (!after_choices_.empty()) TRY(guess_in_turn(after_choices_, guesses_));
  return std::span<const int32_t>(guesses_);
}

Result<ModelOutputs> DraftPasses::compute(const DraftBatch& pass) {
  return draft_model_ ? draft_model_->forward(pass.batch) : model_.draft(pass);
}

// Logits are wanted after every token: a block there takes the places of the keys after it, which
// are made again with the next one.
Status DraftPasses::guess_blocks(Step& step) {
  const DraftBatch& pass = step.drafts.pass;
  const std::vector<DraftOrders::Guesses>& guesses = step.drafts.guesses;
  const auto is_guess = [](const DraftOrders::Guesses& each) { return each.count > 0; };
  if (std::all_of(guesses.begin(), guesses.end(), is_guess)) return guess_blocks_of(pass, 0, step);
  for (size_t i = 0, begin = 0; begin < pass.batch.tokens.size(); ++i) {
    const bool has_output = i < pass.batch.outputs.size();
    const size_t end =
        has_output ? static_cast<size_t>(pass.batch.outputs[i]) + 1 : pass.batch.tokens.size();
    take_rows(pass, begin, end);
    if (has_output) next_.batch.outputs.push_back(static_cast<int32_t>(end - begin) - 1);
    TRY(guess_blocks_of(next_, i, step));
    begin = end;
  }
  return Ok{};
}

void DraftPasses::take_rows(const DraftBatch& pass, size_t begin, size_t end) {
  next_.batch.clear();
  next_.batch.page_lists = pass.batch.page_lists;
  const auto take = [&](const std::vector<int32_t>& from, std::vector<int32_t>& to) {
    to.assign(from.begin() + static_cast<ptrdiff_t>(begin),
              from.begin() + static_cast<ptrdiff_t>(end));
  };
  take(pass.batch.tokens, next_.batch.tokens);
  take(pass.batch.positions, next_.batch.positions);
  take(pass.batch.list_offsets, next_.batch.list_offsets);
  take(pass.hidden_rows, next_.hidden_rows);
}

Status DraftPasses::guess_blocks_of(const DraftBatch& pass, size_t first, Step& step) {
  const size_t count = pass.batch.outputs.size();
  const std::span guesses = std::span(step.drafts.guesses).subspan(first, count);
  TRY(model_.draft_blocks(pass));
  int most = 0;
  previous_.clear();
  for (size_t i = 0; i < count; ++i) {
    const bool wants_logits = guesses[i].count == 0;
    most = std::max(most, wants_logits ? model_.config().draft_block->size : guesses[i].count);
    previous_.push_back(pass.batch.tokens[static_cast<size_t>(pass.batch.outputs[i])]);
  }
  for (int made = 0; made < most; ++made) {
    const ModelOutputs outputs = TRY(model_.follow_in_blocks(made, previous_));
    TRY(choose(outputs, count));
    if (guesses[0].count == 0) TRY(keep_block_logits(outputs, pass, made));
    for (size_t i = 0; i < count; ++i) {
      previous_[i] = best_[i].token;
      const auto at = static_cast<size_t>(guesses[i].at) + static_cast<size_t>(made);
      if (made < guesses[i].count) step.batch.tokens[at] = best_[i].token;
    }
  }
  return Ok{};
}

// A pass of which logits are wanted has one output.
Status DraftPasses::keep_block_logits(const ModelOutputs& outputs, const DraftBatch& pass,
                                      int number) {
  const auto row = static_cast<size_t>(pass.batch.outputs[0]);
  requests_.assign(1, {.position = pass.batch.positions[row] + 2 + number,
                       .previous_token = previous_[0],
                       .wants_logits = true});
  const std::span<const SampledToken> rows = TRY(sampler_->choose(outputs.logits, requests_));
  for (const SampledToken& each : rows) keep(each.logits);
  return Ok{};
}

// A rank's broken logits make a useless guess, which costs time but changes nothing.
Status DraftPasses::choose(const ModelOutputs& outputs, size_t count) {
  const Range vocabulary = outputs.vocabulary;
  const auto width = static_cast<size_t>(vocabulary.size());
  // A draft model may have more ids than the model.
  const int end = std::min(vocabulary.end, model_.config().vocab_size);
  const auto known = static_cast<size_t>(std::max(0, end - vocabulary.begin));
  parts_.resize(static_cast<size_t>(group_.size()));
  part_spans_.clear();
  for (std::vector<Candidate>& part : parts_) {
    part.assign(count, Candidate{});
    part_spans_.push_back(std::as_writable_bytes(std::span(part)));
  }
  std::vector<Candidate>& own = parts_[static_cast<size_t>(group_.rank())];
  for (size_t i = 0; i < count && known > 0; ++i) {
    own[i] = largest(outputs.logits.subspan(i * width, known), outputs.vocabulary.begin);
  }
  TRY(group_.all_gather(part_spans_));
  best_.assign(count, Candidate{});
  for (const std::vector<Candidate>& part : parts_) {
    for (size_t i = 0; i < count; ++i) best_[i] = better(best_[i], part[i]);
  }
  for (Candidate& best : best_) best.token = std::max(best.token, 0);
  return Ok{};
}

Status DraftPasses::keep_logits(const ModelOutputs& outputs, const DraftOrders& orders) {
  const Batch& batch = orders.pass.batch;
  requests_.clear();
  for (const int32_t output : batch.outputs) {
    const auto row = static_cast<size_t>(output);
    requests_.push_back({.position = batch.positions[row] + 1,
                         .previous_token = batch.tokens[row],
                         .wants_logits = true});
  }
  const std::span<const SampledToken> rows = TRY(sampler_->choose(outputs.logits, requests_));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (orders.guesses[i].count > 0) continue;
    keep(rows[i].logits);
  }
  return Ok{};
}

void DraftPasses::continue_guesses(const DraftOrders& orders, int made) {
  const Batch& first = orders.pass.batch;
  next_.batch.clear();
  next_.hidden_rows.clear();
  next_.batch.page_lists = first.page_lists;
  size_t kept = 0;
  for (size_t i = 0; i < continued_.size(); ++i) {
    const size_t number = continued_[i];
    if (orders.guesses[number].count <= made) continue;
    const auto row = static_cast<size_t>(first.outputs[number]);
    next_.batch.tokens.push_back(best_[i].token);
    next_.batch.positions.push_back(first.positions[row] + made);
    next_.batch.list_offsets.push_back(first.list_offsets[row]);
    next_.batch.outputs.push_back(static_cast<int32_t>(kept));
    next_.hidden_rows.push_back(model_.limits().tokens_max + last_rows_[i]);
    last_rows_[kept] = static_cast<int32_t>(kept);
    continued_[kept++] = number;
  }
  continued_.resize(kept);
  last_rows_.resize(kept);
}

}  // namespace lockstep
