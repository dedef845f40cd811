#include "engine/schedule/step_budget.h"

#include <algorithm>
#include <limits>

#include "model/options/run_limits.h"

namespace lockstep {
namespace {

constexpr double kWeight = 0.25;  // of the latest measurement
// A step that other programs have slowed down must not count in full.
constexpr double kJumpMax = 2;
// Shrinks at once after a step that took too long, but grows in small factors: among many others a
// token may cost more than among few, which share the reading of the weights with decoding.
constexpr double kShrinkMax = 0.5;
constexpr double kGrowthMax = 1.25;

void follow(double& estimate, double seen) {
  if (estimate == 0) {
    estimate = seen;
    return;
  }
  const double bounded = std::clamp(seen, estimate / kJumpMax, estimate * kJumpMax);
  estimate += kWeight * (bounded - estimate);
}

}  // namespace

// Falls back to the time measured with fewer sequences: an underestimate, which favours decoding.
double StepBudget::decode_seconds(int decoding) const {
  auto count = std::min(static_cast<size_t>(decoding), decode_seconds_.size() - 1);
  while (count > 0 && decode_seconds_[count] == 0) --count;
  return decode_seconds_[count];
}

int StepBudget::prompt_tokens(int decoding) const {
  if (decoding == 0) return std::numeric_limits<int>::max();
  const double alone = decode_seconds(decoding);
  if (alone == 0 || mixed_in_row_ >= kMixedInRow) return 0;
  constexpr double kMost = std::numeric_limits<int>::max() / 2;
  return static_cast<int>(std::clamp(tokens_per_second_ * alone, double{kTokensMin}, kMost));
}

void StepBudget::observe(StepShape shape, double seconds) {
  if (seconds <= 0 || shape.decoding + shape.prompt_tokens == 0) return;
  // A step after a prompt is not what decoding takes: the draft layer sees the prompt in it.
  const int usual = shape.decoding * (1 + kLayerGuessesMax);
  if (shape.prompt_tokens == 0 && shape.drafted > usual) return;
  if (shape.by_layer) return learn_guesses(shape, seconds);
  if (shape.guesses > 0) return;
  // It takes longer than decoding alone, and no guess in it is checked.
  if (shape.guesses_at_end) return;
  if (shape.decoding > 0) {
    guessing_in_row_ = 0;
    ++alone_in_row_;
  }
  if (shape.decoding == 0) {
    // Tokens cost at most as much together with decoding as they do alone.
    const double fitting = (kStretch - 1) * shape.prompt_tokens / seconds;
    if (!has_learned_) tokens_per_second_ = std::max(tokens_per_second_, fitting);
  } else if (shape.prompt_tokens == 0) {
    const auto count = std::min(static_cast<size_t>(shape.decoding), decode_seconds_.size() - 1);
    follow(decode_seconds_[count], seconds);
    mixed_in_row_ = 0;
  } else if (const double alone = decode_seconds(shape.decoding); alone > 0) {
    learn(alone, shape.prompt_tokens, seconds);
    ++mixed_in_row_;
  }
}

int StepBudget::guesses(int decoding, double right, int most) const {
  if (decode_seconds(decoding) == 0 || guessing_in_row_ >= kGuessingInRow) return 0;
  int best = 0;
  double best_rate = 1;
  for (int count = 1; count <= most; ++count) {
    const double rate = expected_tokens(count, right) / (1 + guess_cost_ * count);
    if (rate > best_rate) {
      best_rate = rate;
      best = count;
    }
  }
  return best == 0 && alone_in_row_ >= kAloneInRow ? std::min(1, most) : best;
}

void StepBudget::learn_guesses(StepShape shape, double seconds) {
  ++guessing_in_row_;
  alone_in_row_ = 0;
  const double alone = decode_seconds(shape.decoding);
  if (alone == 0) return;
  const double added = std::max(0.0, seconds / alone - 1) * shape.decoding / shape.guesses;
  guess_cost_ += kWeight * (std::clamp(added, 0.01, 2.0) - guess_cost_);
}

void StepBudget::learn(double alone, int prompt_tokens, double seconds) {
  has_learned_ = true;
  const double room = (kStretch - 1) * alone;
  const double added = std::max(seconds - alone, kShrinkMax * room);
  const double factor = std::clamp(room / added, kShrinkMax, kGrowthMax);
  const double fitting = factor * prompt_tokens / alone;
  // A step with fewer tokens than allowed is no reason to allow fewer.
  const bool changes = factor < 1 ? fitting < tokens_per_second_ : fitting > tokens_per_second_;
  if (changes) tokens_per_second_ = fitting;
}

}  // namespace lockstep
