// Counter-based random numbers: each number depends only on (seed, position, token), so that a seed
// gives the same text alone or in any batch, on any ranks, and after a restart.
#pragma once

#include <cstdint>

#include "kernels/math.h"

namespace lockstep {

// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// 2014).
constexpr uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A key for all draws of one position of one sequence.
constexpr uint64_t position_key(uint64_t seed, int32_t position) {
  return mix_bits(mix_bits(seed + 0x9e3779b97f4a7c15u) ^
                  static_cast<uint64_t>(static_cast<uint32_t>(position)));
}

// Uniform on the open interval (0, 1): 24 bits, centred in their step.
constexpr float uniform(uint64_t key, int32_t token) {
  const uint64_t bits = mix_bits(key + 0x9e3779b97f4a7c15u * static_cast<uint32_t>(token));
  return (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;
}

// Standard Gumbel noise. The token with the largest logit / temperature + noise is a sample of the
// softmax distribution (the Gumbel-max trick), so that sampling over a cut vocabulary only compares
// the ranks' best.
inline float gumbel(uint64_t key, int32_t token) {
  return -log_f32(-log_f32(uniform(key, token)));
}
// Bounds of gumbel() over all 24-bit draws.
inline constexpr float kGumbelMin = -2.86f;
inline constexpr float kGumbelMax = 17.4f;

}  // namespace lockstep
