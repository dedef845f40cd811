// Penalties: what the tokens that have come already change about the scores of the next one. All
// are sparse: they touch tokens that stand in the history, which every rank knows, so each rank
// computes them in its own part of the vocabulary. Scores stay numbers. Any thread, with a scratch
// of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/options.h"

namespace lockstep {

// Scores of the tokens from `first_token` on.
struct ScorePart {
  std::span<float> scores;
  int32_t first_token = 0;

  // Null if the token lies elsewhere.
  float* find(int32_t token) const {
    const auto index = static_cast<size_t>(int64_t{token} - first_token);
    return token >= first_token && index < scores.size() ? &scores[index] : nullptr;
  }
};

// Between two calls all counts are 0.
struct PenaltyScratch {
  std::vector<int32_t> counts;  // by token
  std::vector<int32_t> lengths;

  // Also for a token that no vocabulary has.
  int32_t& count(int32_t token);
};

float clamp_score(float score);

void add_bias(std::span<const LogitBias> biases, const ScorePart& part);

// `history`: the tokens so far, of which those from `answer_begin` on are the answer's.
void add_penalties(std::span<const int32_t> history, size_t answer_begin,
                   const SamplingOptions& options, PenaltyScratch& scratch, const ScorePart& part);

// DRY (Don't Repeat Yourself, as text-generation-webui and llama.cpp have it): where the last
// tokens stood before, the token that followed them there is made less likely. Repetitions hold no
// token of `breakers`, and breakers are never made less likely.
void add_dry(std::span<const int32_t> history, std::span<const int32_t> breakers,
             const SamplingOptions& options, PenaltyScratch& scratch, const ScorePart& part);

// How many of the last tokens of a sequence the options look at: all (SIZE_MAX), or so many.
size_t history_needed(const SamplingOptions& options);

}  // namespace lockstep
