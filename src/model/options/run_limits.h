// How much of a model runs together if nobody asks for more or less. The engine, the planner and
// the command line take these limits from here, so a plan counts the memory that the engine needs.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/config/config.h"

namespace lockstep {

// Guesses of the draft layer in a step: more seldom pay, as each is made from the one before.
inline constexpr int kLayerGuessesMax = 6;
// The tokens of a step with so many guesses, if each is right with this chance when those before it
// are, and none is looked at after a wrong one: 1 + right + right^2 + ...
constexpr double expected_tokens(int guesses, double right) {
  double tokens = 1, chance = 1;
  for (int i = 0; i < guesses; ++i) tokens += chance *= right;
  return tokens;
}
inline constexpr int kSequencesDefault = 8;
inline constexpr int kBatchTokensDefault = 512;  // of one step
// Positions of a sequence: enough to chat, without the memory for a model's longest.
inline constexpr int kContextDefault = 8192;

// 0 asks for kContextDefault, or for all of the model's positions if it has fewer.
// kInvalidArgument if the model has fewer positions than requested.
Result<int> context_for(const ModelConfig& config, int64_t requested);

}  // namespace lockstep
