// GuessAccuracy: how often the draft layer's guesses for one sequence are right. Pure.
#pragma once

namespace lockstep {

struct GuessAccuracy {
  // The share of guesses that were right, of those whose predecessors were.
  double share = 0.6;

  // In one step `count` guesses were made, and the first `were_right` were right.
  void learn(int count, int were_right);
};

}  // namespace lockstep
