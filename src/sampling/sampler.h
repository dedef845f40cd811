// Sampler: one rank's part in choosing the tokens of a batch over a vocabulary that is cut over the
// ranks. One exchange: each rank sends its best candidate, its best few where there is top-k, or
// its logits where the whole row is needed, to rank 0. Sequences that depend on more than their
// options have a slot, and each rank follows what they have said. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "collective/group.h"
#include "sampling/choice_state.h"
#include "sampling/choose.h"
#include "sampling/logprobs.h"

namespace lockstep {

struct ChoiceRequest {
  int32_t position = 0;  // of the token that is chosen, in its sequence
  SamplingOptions sampling;
  bool wants_token = false;
  bool wants_logits = false;
  int32_t top_logprobs = -1;  // with the token: its own logprob and those of so many; -1: none
  int32_t slot = -1;          // of the sequence's ChoiceState; -1: it has none
  int32_t after = -1;         // the token before it, at position - 1; for a slot
  uint64_t sequence = 0;      // the request, known on the engine's rank 0 alone
};

struct Choice {
  int32_t token = -1;             // -1 if none was wanted, or there is none
  bool is_number = true;          // false: a logit is infinite or NaN, and nothing is chosen
  bool has_ended = false;         // a token was wanted, and no token at all may come next
  bool is_lost = false;           // the rules of the sequence cannot be followed any more
  std::span<const float> logits;  // the whole row if wanted; valid until the next choose()
  std::span<const TokenLogprob> logprobs;  // the token's, then the likeliest; likewise
};

class Sampler {
 public:
  // Rank r has tokens [begins[r], begins[r + 1]). `group` must outlive the sampler.
  Sampler(Group& group, std::vector<int> begins);

  // Where the states of sequences are put in, the same on every rank.
  ChoiceSlots& slots() { return slots_; }

  // `logits`: this rank's part of one row for each request. Rank 0 gets the choices, the others
  // nothing. kCorrupt if a row does not follow what its slot has.
  Result<std::span<const Choice>> choose(std::span<const float> logits,
                                         std::span<const ChoiceRequest> requests);

 private:
  size_t width(int rank) const;
  size_t part_bytes(std::span<const ChoiceRequest> requests, int rank) const;
  Status fill_own_part(std::span<const float> logits, std::span<const ChoiceRequest> requests);
  // The state of a request's sequence, behind the token before the choice; null: it has none.
  Result<ChoiceState*> follow(const ChoiceRequest& request);

  // Into candidates_: the best tokens of a part that may come next, as many as the request's kind
  // asks for, or the one that says why there is no choice.
  void find_candidates(std::span<const float> logits, int32_t first_token,
                       const ChoiceRequest& request, ChoiceState* state);
  void list_candidates(std::span<const float> scores, int32_t first_token,
                       const ChoiceRequest& request);
  // In scores_; false: the rules are lost.
  bool forbid(int32_t first_token, TokenRules& rules);

  Status choose_from_parts(const ChoiceRequest& request, Choice& choice);
  Candidate best_of_parts(const ChoiceRequest& request);
  std::span<const float> row_of_parts();
  Candidate best_of_row(std::span<const float> row, const ChoiceRequest& request,
                        ChoiceState* state);

  Group& group_;
  std::vector<int> begins_;
  ChoiceSlots slots_;
  std::vector<std::vector<std::byte>> parts_;  // (ranks); the others' are filled on rank 0 only
  std::vector<std::span<std::byte>> part_spans_;
  std::vector<float> rows_;
  size_t rows_used_ = 0;
  std::vector<size_t> offsets_;  // (ranks) of the parts' bytes, those that are read
  std::vector<Choice> choices_;
  std::vector<Candidate> candidates_;
  std::vector<float> scores_;
  std::vector<TokenLogprob> logprobs_;
  PenaltyScratch penalty_scratch_;
};

}  // namespace lockstep
