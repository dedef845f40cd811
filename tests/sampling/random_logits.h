// Logits as a model's are spread, for the tests of this folder.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace lockstep {

inline std::vector<float> random_logits(size_t count, unsigned seed, float deviation) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

}  // namespace lockstep
