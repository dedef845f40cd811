#include "engine/choices/guess_accuracy.h"

namespace lockstep {

void GuessAccuracy::learn(int count, int were_right) {
  constexpr double kWeight = 1.0 / 10;
  for (int i = 0; i < were_right; ++i) share += kWeight * (1 - share);
  if (were_right < count) share -= kWeight * share;
}

}  // namespace lockstep
