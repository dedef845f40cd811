// Candidate: a token and its score, as ranks send them to rank 0. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace lockstep {

struct Candidate {
  float score = 0;     // NaN: the token's logit is not finite, so nothing is chosen
  int32_t token = -1;  // -1: none
};

// Replaces a candidate's token if the sequence's rules could not be followed any further, so
// nothing is chosen. Its score is NaN.
inline constexpr int32_t kLostToken = -2;

// The score of a token that may not be chosen.
inline constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// The larger score; the smaller token if scores are equal. A NaN score wins over all others, so
// that it is seen wherever it occurs, and a lost token wins over a NaN.
Candidate better(Candidate a, Candidate b);
// Whether `a` is worse than `b`; both scores must be numbers.
inline bool ranks_lower(const Candidate& a, const Candidate& b) {
  return a.score < b.score || (a.score == b.score && a.token > b.token);
}

// For sorting the best first.
inline bool ranks_higher(const Candidate& a, const Candidate& b) {
  return ranks_lower(b, a);
}
bool is_number(const Candidate& candidate);

// Whether no logit is infinite or NaN.
bool are_numbers(std::span<const float> logits);
// The first infinite or NaN logit; there must be one.
Candidate first_broken(std::span<const float> logits, int32_t first_token);
// The largest logit of a part, or its first infinite or NaN one.
Candidate largest(std::span<const float> logits, int32_t first_token);
// The largest allowed score; all scores must be numbers. No token if none is allowed.
Candidate largest_allowed(std::span<const float> scores, int32_t first_token);

}  // namespace lockstep
