// Choosing a token from logits. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/options.h"

namespace lockstep {

struct Candidate {
  float score = 0;     // NaN: the token's logit is no number, so there is no choice
  int32_t token = -1;  // -1: none
};

// The larger score; the smaller token where scores are equal. One that is no number wins over all
// others, so that it is seen wherever it comes from.
Candidate better(Candidate a, Candidate b);
bool is_number(const Candidate& candidate);
// Whether no logit is infinite or NaN.
bool are_numbers(std::span<const float> logits);

// True if the choice needs the logits of the whole vocabulary in one place (top-k, top-p).
bool needs_whole_row(const SamplingOptions& options);

// The best token of a part of the vocabulary that begins at `first_token`; the best of all parts'
// candidates is the choice. For options without top-k and top-p.
Candidate choose_in_part(std::span<const float> logits, int32_t first_token,
                         const SamplingOptions& options, int32_t position);

// The choice from a whole row. `scratch` is overwritten.
Candidate choose_in_row(std::span<const float> logits, const SamplingOptions& options,
                        int32_t position, std::vector<Candidate>& scratch);

}  // namespace lockstep
