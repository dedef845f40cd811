// Penalties: how the tokens so far change the scores of the next one. All are sparse: they affect
// only tokens in the history, which every rank knows, so each rank computes them in its own part of
// the vocabulary. Scores stay finite. Any thread, with its own scratch.
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

  // Null if the token is outside this part.
  float* find(int32_t token) const {
    const auto index = static_cast<size_t>(int64_t{token} - first_token);
    return token >= first_token && index < scores.size() ? &scores[index] : nullptr;
  }
};

// Between calls all counts are 0.
struct PenaltyScratch {
  std::vector<int32_t> counts;  // by token
  std::vector<int32_t> lengths;

  // Also for tokens outside the vocabulary.
  int32_t& count(int32_t token);
};

float clamp_score(float score);

void add_bias(std::span<const LogitBias> biases, const ScorePart& part);

// `history`: the tokens so far; the answer begins at `answer_begin`.
void add_penalties(std::span<const int32_t> history, size_t answer_begin,
                   const SamplingOptions& options, PenaltyScratch& scratch, const ScorePart& part);

// DRY (Don't Repeat Yourself, as in text-generation-webui and llama.cpp): where the last tokens
// occurred earlier, the token that followed them there becomes less likely. Repetitions contain no
// token of `breakers`, and breakers never become less likely.
void add_dry(std::span<const int32_t> history, std::span<const int32_t> breakers,
             const SamplingOptions& options, PenaltyScratch& scratch, const ScorePart& part);

// How many of a sequence's last tokens the options use; SIZE_MAX: all.
size_t history_needed(const SamplingOptions& options);

}  // namespace lockstep
