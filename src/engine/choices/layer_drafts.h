// LayerDrafts: how well the draft layer has guessed a sequence's tokens. Pure.
#pragma once

namespace lockstep {

// More guesses in a step seldom pay: each is made from the one before.
inline constexpr int kLayerGuessesMax = 6;

struct LayerDrafts {
  // The share of guesses that were right, of those whose predecessors were.
  double right = 0.6;

  // In one step `count` guesses were made, and the first `were_right` were right.
  void learn(int count, int were_right);
};

}  // namespace lockstep
