// Sampler: one rank's part in choosing the tokens of a batch, with the vocabulary cut over the
// ranks. One exchange: each rank sends rank 0 its best candidate, its best few with top-k, or its
// logits if the whole row is needed. Each rank keeps the options and the state of a sequence in its
// slot (choice_state.h), so a row only names it. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "collective/group/group.h"
#include "sampling/choice_state.h"
#include "sampling/choose.h"
#include "sampling/logprobs.h"

namespace lockstep {

struct ChoiceRequest {
  int32_t position = 0;         // of the chosen token in its sequence
  int32_t previous_token = -1;  // the token at position - 1
  int32_t slot = -1;            // of the sequence's ChoiceState; only needed for a token
  bool wants_token = false;
  bool wants_logits = false;
  uint64_t sequence = 0;  // the request, known only on the engine's rank 0
};

struct SampledToken {
  int32_t token = -1;             // -1 if none was wanted or none exists
  bool is_number = true;          // false: a logit is infinite or NaN, and nothing is chosen
  bool has_ended = false;         // a token was wanted, but none is allowed
  bool is_lost = false;           // the sequence's rules cannot be followed any further
  std::span<const float> logits;  // the whole row if wanted; valid until the next choose()
  std::span<const TokenLogprob> logprobs;  // the token's, then the likeliest; likewise
};

class Sampler {
 public:
  // Rank r has tokens [begins[r], begins[r + 1]). `group` must outlive the sampler.
  Sampler(Group& group, std::vector<int> begins);

  // The states of sequences, to be set alike on every rank.
  ChoiceSlots& slots() { return slots_; }

  // `logits`: this rank's part of one row per request. Rank 0 gets the choices, the others nothing.
  // kCorrupt if a row has no slot for its token, or does not continue its slot's sequence.
  Result<std::span<const SampledToken>> choose(std::span<const float> logits,
                                               std::span<const ChoiceRequest> requests);

 private:
  // A row to choose from.
  struct Row {
    ChoiceRequest request;
    ChoiceState* state = nullptr;  // null: no token is wanted

    bool sends_row() const;
    // How many candidates of a part the choice needs, if it needs no whole row.
    size_t candidate_count(size_t width) const;
    size_t part_bytes(size_t width) const;
    // Brings the state up to the token before the choice.
    Status follow() const;
  };

  Status find_rows(std::span<const ChoiceRequest> requests);
  size_t width(int rank) const;
  size_t part_bytes(int rank) const;
  Status fill_own_part(std::span<const float> logits);

  // Fills candidates_ with the best allowed tokens of a part, as many as the row's kind needs, or
  // the one that says why there is no choice.
  void find_candidates(std::span<const float> logits, int32_t first_token, const Row& row);
  void list_candidates(std::span<const float> scores, int32_t first_token, const Row& row);
  // Marks tokens in scores_; false: the rules are lost.
  bool forbid(int32_t first_token, TokenRules& rules);

  Status choose_from_parts(const Row& row, SampledToken& choice);
  Candidate best_of_parts(const Row& row);
  std::span<const float> row_of_parts();
  Candidate best_of_row(std::span<const float> logits, const Row& row);

  Group& group_;
  std::vector<int> begins_;
  ChoiceSlots slots_;
  std::vector<Row> rows_;
  std::vector<std::vector<std::byte>> parts_;  // (ranks); the others' are filled on rank 0 only
  std::vector<std::span<std::byte>> part_spans_;
  std::vector<float> whole_rows_;
  size_t whole_used_ = 0;        // of whole_rows_
  std::vector<size_t> offsets_;  // (ranks) bytes already read of each part
  std::vector<SampledToken> choices_;
  std::vector<Candidate> candidates_;
  std::vector<float> scores_;
  std::vector<TokenLogprob> logprobs_;
  PenaltyScratch penalty_scratch_;
};

}  // namespace lockstep
