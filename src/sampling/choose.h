// Choosing a token from logits. Pure functions; any thread.
//
// The choice is defined as follows, for any number of ranks:
//   1. an infinite or NaN logit anywhere in the row is an error, nothing is chosen;
//   2. biases, then penalties are added to the logits (penalties.h);
//   3. forbidden tokens are removed: end tokens before min_tokens, and those that a grammar
//      forbids (token_rules.h);
//   4. at temperature 0 the largest logit is chosen; else the logits are multiplied by
//      1 / temperature;
//   5. filters, each over what the previous one left: top-k, typical, top-p, min-p (filters.h);
//   6. the token with the largest score plus noise is chosen (random.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/candidate.h"
#include "sampling/options.h"

namespace lockstep {

// The data of a rank that rank 0 needs to choose.
enum class PartKind {
  kCandidate,  // its best token
  kList,       // its top_k best tokens
  kRow,        // all of its logits
};
PartKind part_kind(const SamplingOptions& options);

// A longer list is sent as a row.
inline constexpr int32_t kListMax = 1024;

// The best token of a part of the vocabulary that begins at `first_token`; the best of all parts'
// candidates is the choice. Only for options of kind kCandidate.
Candidate choose_in_part(std::span<const float> logits, int32_t first_token,
                         const SamplingOptions& options, int32_t position);
// The same for scores known to be numbers, except for forbidden tokens (kForbidden). No token if
// all are forbidden.
Candidate choose_among(std::span<const float> scores, int32_t first_token,
                       const SamplingOptions& options, int32_t position);

// The `count` best tokens of a part, best first, with their scaled scores; fewer if fewer are
// allowed. Takes scores like choose_among().
void list_best(std::span<const float> scores, int32_t first_token, const SamplingOptions& options,
               size_t count, std::vector<Candidate>& best);

// The choice from a whole row of scores like those of choose_among(), with any options.
// `candidates` is overwritten.
Candidate choose_in_scores(std::span<const float> scores, const SamplingOptions& options,
                           int32_t position, std::vector<Candidate>& candidates);
// The choice from the lists of all parts, in any order.
Candidate choose_in_lists(std::vector<Candidate>& candidates, const SamplingOptions& options,
                          int32_t position);

// The choice from a whole row of logits.
Candidate choose_in_row(std::span<const float> logits, const SamplingOptions& options,
                        int32_t position, std::vector<Candidate>& candidates);

}  // namespace lockstep
