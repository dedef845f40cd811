// StepBudget: how many prompt tokens a step with decoding sequences may have, so that a long prompt
// stretches the time between two of their tokens by no more than a bound. It learns from step
// times: how long decoding alone takes for each number of sequences, and how many tokens fit into
// the rest. Results do not depend on it, since no bit depends on chunks. Pure; used on rank 0 by
// the planning thread. Nothing is allocated after construction.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep {

// The contents of a step.
struct StepShape {
  int decoding = 0;  // sequences that get one token each
  int prompt_tokens = 0;
  int guesses = 0;              // extra tokens of these sequences; there are no prompts then
  bool by_layer = false;        // the draft layer or the draft model makes guesses
  bool guesses_at_end = false;  // for later steps
  int drafted = 0;              // tokens that it sees before: the layer those of the step before
};

class StepBudget {
 public:
  // A step with prompts may take this many times as long as decoding alone: below the promised 2.5,
  // to leave room for the unforeseen.
  static constexpr double kStretch = 2.2;
  // Prompts always progress.
  static constexpr int kTokensMin = 4;
  // After this many steps with prompts one goes without, to measure decoding alone again.
  static constexpr int kMixedInRow = 32;

  // After this many steps with guesses one goes without, to measure decoding alone again; and after
  // this many without, because guesses did not pay, one has a guess.
  static constexpr int kGuessingInRow = 64;
  static constexpr int kAloneInRow = 32;
  static constexpr double kGuessCost = 0.15;  // until it is known

  explicit StepBudget(int sequences_max)
      : decode_seconds_(static_cast<size_t>(sequences_max) + 1, 0) {}

  // For a step with this many decoding sequences. 0: first measure decoding alone.
  int prompt_tokens(int decoding) const;
  void observe(StepShape shape, double seconds);
  // How many guesses of the draft layer, at most `most`, make the most tokens in a second. `right`:
  // the share of guesses that are right if those before them are.
  int guesses(int decoding, double right, int most) const;

 private:
  double decode_seconds(int decoding) const;
  void learn_guesses(StepShape shape, double seconds);
  void learn(double alone, int prompt_tokens, double seconds);

  std::vector<double> decode_seconds_;  // (sequences + 1), by number of decoding ones; 0: not known
  // Prompt tokens that fit into a step, per second that decoding alone takes.
  double tokens_per_second_ = 0;
  bool has_learned_ = false;  // from steps that had both
  int mixed_in_row_ = 0;
  // The time that a guess of the draft layer adds to a step, as a share of decoding alone.
  double guess_cost_ = kGuessCost;
  int guessing_in_row_ = 0;
  int alone_in_row_ = 0;
};

}  // namespace lockstep
