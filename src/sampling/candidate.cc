#include "sampling/candidate.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lockstep {
namespace {

// Without the sign the bits of floats are in the order of their sizes, and those of NaN beyond
// infinity's.
constexpr uint32_t kSizeMask = 0x7fffffff;
constexpr uint32_t kInfiniteSize = 0x7f800000;

uint32_t size_bits(float value) {
  return std::bit_cast<uint32_t>(value) & kSizeMask;
}

}  // namespace

Candidate better(Candidate a, Candidate b) {
  if (a.token == kLostToken || b.token == kLostToken) return a.token == kLostToken ? a : b;
  if (a.token < 0) return b;
  if (b.token < 0) return a;
  if (!is_number(a) && !is_number(b)) return a.token < b.token ? a : b;
  if (!is_number(a) || !is_number(b)) return is_number(a) ? b : a;
  return ranks_lower(a, b) ? b : a;
}

bool is_number(const Candidate& candidate) {
  return !std::isnan(candidate.score);
}

bool are_numbers(std::span<const float> logits) {
  uint32_t most = 0;
  for (const float logit : logits) most = std::max(most, size_bits(logit));
  return most < kInfiniteSize;
}

Candidate first_broken(std::span<const float> logits, int32_t first_token) {
  const auto broken = std::find_if(logits.begin(), logits.end(),
                                   [](float logit) { return size_bits(logit) >= kInfiniteSize; });
  return {std::numeric_limits<float>::quiet_NaN(),
          first_token + static_cast<int32_t>(broken - logits.begin())};
}

Candidate largest(std::span<const float> logits, int32_t first_token) {
  Candidate best{};
  uint32_t most = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    most = std::max(most, size_bits(logits[i]));
    if (best.token < 0 || logits[i] > best.score) {
      best = {logits[i], first_token + static_cast<int32_t>(i)};
    }
  }
  return most < kInfiniteSize ? best : first_broken(logits, first_token);
}

}  // namespace lockstep
