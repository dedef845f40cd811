// LayerDrafts: how well the draft layer has guessed a sequence's tokens. Pure.
#pragma once

namespace lockstep {

struct LayerDrafts {
  // The share of guesses that were right, of those whose predecessors were.
  double right = 0.6;

  // In one step `count` guesses were made, and the first `were_right` were right.
  void learn(int count, int were_right);
};

}  // namespace lockstep
