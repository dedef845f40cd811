// StepBudget: how many tokens of prompts a step may have beside sequences that decode, so that
// a long prompt stretches the time between two of their tokens by no more than a bound. It learns
// from the times of steps: what decoding alone takes for each number of sequences, and how many
// tokens fit into the rest. Results do not depend on it, since no bit depends on chunks. Pure; used
// on rank 0 by the thread that plans. Nothing is allocated after construction.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep {

// What a step computes.
struct StepShape {
  int decoding = 0;  // sequences that give one token each
  int prompt_tokens = 0;
  int guesses = 0;  // tokens of these sequences besides; there are no prompts then
};

class StepBudget {
 public:
  // A step with prompts takes so many times what decoding alone does: below the 2.5 that are
  // promised, for the sake of what cannot be foreseen.
  static constexpr double kStretch = 2.2;
  // Prompts always progress.
  static constexpr int kTokensMin = 4;
  // So often one of the steps with prompts goes without, to see what decoding takes by now.
  static constexpr int kMixedInRow = 32;

  explicit StepBudget(int sequences_max)
      : decode_seconds_(static_cast<size_t>(sequences_max) + 1, 0) {}

  // Of a step in which so many sequences decode. 0: it must be seen first what decoding takes.
  int prompt_tokens(int decoding) const;
  void observe(StepShape shape, double seconds);

 private:
  double decode_seconds(int decoding) const;
  void learn(double alone, int prompt_tokens, double seconds);

  std::vector<double> decode_seconds_;  // (sequences + 1), by how many decode; 0: not known
  // Tokens of prompts that fit into a step, for each second that decoding alone takes.
  double tokens_per_second_ = 0;
  bool has_learned_ = false;  // from steps that had both
  int mixed_in_row_ = 0;
};

}  // namespace lockstep
