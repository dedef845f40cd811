// Candidate: a token and its score, as ranks send it to rank 0. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace lockstep {

struct Candidate {
  float score = 0;     // NaN: the token's logit is no number, so there is no choice
  int32_t token = -1;  // -1: none
};

// In the place of a candidate's token: what the sequence may be could not be followed any more, so
// there is no choice. Its score is NaN.
inline constexpr int32_t kLostToken = -2;

// The score of a token that may not be chosen.
inline constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// The larger score; the smaller token where scores are equal. One that is no number wins over all
// others, so that it is seen wherever it comes from, and a lost one over these.
Candidate better(Candidate a, Candidate b);
// Whether `a` is worse than `b`, for two that are numbers.
inline bool ranks_lower(const Candidate& a, const Candidate& b) {
  return a.score < b.score || (a.score == b.score && a.token > b.token);
}
bool is_number(const Candidate& candidate);

// Whether no logit is infinite or NaN.
bool are_numbers(std::span<const float> logits);
// The first one that is; there must be one.
Candidate first_broken(std::span<const float> logits, int32_t first_token);
// The largest of a part, or its first one that is no number.
Candidate largest(std::span<const float> logits, int32_t first_token);
// The largest score that is allowed, all of which are numbers; no token where none is.
Candidate largest_allowed(std::span<const float> scores, int32_t first_token);

}  // namespace lockstep
