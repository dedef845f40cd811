#include "engine/run/draft_passes.h"

#include <algorithm>

namespace lockstep {

Result<DraftOutcome> DraftPasses::run(Step& step) {
  const DraftOrders& orders = step.drafts;
  logits_.clear();
  ModelOutputs outputs = TRY(model_.draft(orders.pass));
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
      if (made < each.count) step.batch.tokens[at] = best_[i].token;
    }
    continue_guesses(orders, ++made);
    if (!continued_.empty()) outputs = TRY(model_.draft(next_));
  }
  for (size_t i = 0; i < step.requests.size(); ++i) {
    step.requests[i].previous_token = step.batch.tokens[static_cast<size_t>(step.batch.outputs[i])];
  }
  return DraftOutcome{step.batch.tokens, logits_};
}

// A rank's broken logits make a useless guess, which costs time but changes nothing.
Status DraftPasses::choose(const ModelOutputs& outputs, size_t count) {
  const auto width = static_cast<size_t>(outputs.vocabulary.size());
  parts_.resize(static_cast<size_t>(group_.size()));
  part_spans_.clear();
  for (std::vector<Candidate>& part : parts_) {
    part.assign(count, Candidate{});
    part_spans_.push_back(std::as_writable_bytes(std::span(part)));
  }
  std::vector<Candidate>& own = parts_[static_cast<size_t>(group_.rank())];
  for (size_t i = 0; i < count && width > 0; ++i) {
    own[i] = largest(outputs.logits.subspan(i * width, width), outputs.vocabulary.begin);
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
  const std::span<const SampledToken> rows = TRY(sampler_.choose(outputs.logits, requests_));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (orders.guesses[i].count > 0) continue;
    logits_.emplace_back(rows[i].logits.begin(), rows[i].logits.end());
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
