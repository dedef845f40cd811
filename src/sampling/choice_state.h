// ChoiceState: what choices of one sequence depend on beyond the options of a row: the tokens so
// far, and what may come next. Every rank that samples keeps one for each sequence that needs it,
// fed with the same tokens, so that each can judge its own part of the vocabulary. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sampling/penalties.h"
#include "sampling/token_rules.h"

namespace lockstep {

// How a sequence begins.
struct ChoiceSetup {
  int32_t answer_begin = 0;     // the position of the answer's first token
  int32_t begin = 0;            // the position of tokens.front(); at most answer_begin
  std::vector<int32_t> tokens;  // up to the one before the first choice, as far as they matter
  std::vector<LogitBias> logit_bias;
  std::vector<int32_t> stop_ids;  // not chosen before min_tokens of the answer
  int32_t min_tokens = 0;
  std::vector<int32_t> dry_breakers;
};

class ChoiceState {
 public:
  // `rules` (or null) is at the beginning of the answer; what the answer has already is accepted
  // here.
  ChoiceState(ChoiceSetup setup, std::unique_ptr<TokenRules> rules);

  // The sequence has `token` at `position`, and the next choice is made behind it: tokens that were
  // followed beyond are taken back. False if what came between is missing, or is too long ago.
  bool follow(int32_t position, int32_t token);

  // Null: every token. Where is_lost(), there is nothing to ask.
  TokenRules* rules() { return rules_.get(); }
  bool is_lost() const { return lost_at_.has_value(); }
  bool changes_scores(const SamplingOptions& options) const;
  // Puts biases and penalties on a part of the row, and forbids end tokens that come too early.
  void adjust(const SamplingOptions& options, PenaltyScratch& scratch, const ScorePart& part) const;

 private:
  bool forbids_stops() const;
  void push(int32_t token);
  bool truncate(size_t size);

  ChoiceSetup setup_;  // `tokens` grows
  std::unique_ptr<TokenRules> rules_;
  size_t answer_index_;  // in tokens
  // The rules have refused the token at this index.
  std::optional<size_t> lost_at_;
};

// The states of the sequences that have a slot.
class ChoiceSlots {
 public:
  void set(int32_t slot, ChoiceSetup setup, std::unique_ptr<TokenRules> rules);
  void release(int32_t slot);
  void clear() { states_.clear(); }
  // Null if the slot is empty.
  ChoiceState* find(int32_t slot);

 private:
  std::vector<std::unique_ptr<ChoiceState>> states_;
};

}  // namespace lockstep
