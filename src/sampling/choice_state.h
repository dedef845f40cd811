// ChoiceState: one sequence's options for choosing tokens and, where choices depend on more than
// the logits, the tokens so far and which may come next. Every sampling rank keeps one for each
// sequence, fed with the same tokens, so that each can judge its own part of the vocabulary. One
// thread.
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
  SamplingOptions sampling{};
  int32_t top_logprobs = -1;    // with each token: its own logprob and this many top ones; -1: none
  int32_t answer_begin = 0;     // the position of the answer's first token
  int32_t begin = 0;            // the position of tokens.front(); at most answer_begin
  std::vector<int32_t> tokens;  // those that matter, up to the one before the first choice
  std::vector<LogitBias> logit_bias;
  std::vector<int32_t> stop_ids;  // not chosen before min_tokens of the answer
  int32_t min_tokens = 0;
  std::vector<int32_t> dry_breakers;

  // Whether choices depend on the tokens so far, even without rules.
  bool needs_tokens() const;
};

class ChoiceState {
 public:
  // `rules` (or null) is at the beginning of the answer; existing answer tokens are accepted here.
  ChoiceState(ChoiceSetup setup, std::unique_ptr<TokenRules> rules);

  // The sequence has `token` at `position`, and the next choice follows it: later tokens are rolled
  // back. False if tokens in between are missing, or the rollback is too long. A sequence whose
  // choices do not depend on its tokens keeps none of them.
  bool follow(int32_t position, int32_t token);

  const SamplingOptions& sampling() const { return setup_.sampling; }
  int32_t top_logprobs() const { return setup_.top_logprobs; }

  // Null: every token is allowed. Not to be used if is_lost().
  TokenRules* rules() { return rules_.get(); }
  bool is_lost() const { return lost_at_.has_value(); }
  bool changes_scores() const;
  // The choice depends on the logits, the seed and the position alone.
  bool is_plain() const { return !rules_ && !changes_scores(); }
  // Adds biases and penalties to a part of the row, and forbids end tokens that come too early.
  void adjust(PenaltyScratch& scratch, const ScorePart& part) const;

 private:
  bool forbids_stops() const;
  void push(int32_t token);
  bool truncate(size_t size);

  ChoiceSetup setup_;  // `tokens` grows
  std::unique_ptr<TokenRules> rules_;
  bool keeps_tokens_;
  size_t answer_index_;  // in tokens
  // Index of the token that the rules refused.
  std::optional<size_t> lost_at_;
};

// The states of sequences, by slot.
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
