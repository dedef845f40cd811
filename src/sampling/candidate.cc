#include "sampling/candidate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

namespace lockstep {
namespace {

// Without the sign the bits of floats sort by magnitude, with NaN above infinity.
constexpr uint32_t kSizeMask = 0x7fffffff;
constexpr uint32_t kInfiniteSize = 0x7f800000;

uint32_t size_bits(float value) {
  return std::bit_cast<uint32_t>(value) & kSizeMask;
}

// The first of the largest values, and the largest magnitude.
struct Top {
  size_t index;
  uint32_t size;
};

// Values processed at once, and partial maxima kept: in this form the compiler vectorises the
// search, which a step of many sequences runs over many vocabularies.
constexpr size_t kBlock = 1024;
constexpr size_t kMaxima = 16;

// The largest value of a block. Among zeros any, whatever their signs.
float largest_value(std::span<const float> block) {
  float most[kMaxima];
  std::fill(std::begin(most), std::end(most), kForbidden);
  size_t i = 0;
  for (; i + kMaxima <= block.size(); i += kMaxima) {
    for (size_t k = 0; k < kMaxima; ++k) {
      most[k] = block[i + k] > most[k] ? block[i + k] : most[k];
    }
  }
  float largest = *std::max_element(std::begin(most), std::end(most));
  for (; i < block.size(); ++i) largest = std::max(largest, block[i]);
  return largest;
}

uint32_t largest_size(std::span<const float> block) {
  uint32_t most = 0;
  for (const float value : block) most = std::max(most, size_bits(value));
  return most;
}

// For numbers. If there are infinities or NaNs, `index` is undefined.
Top top_of(std::span<const float> values) {
  float most = kForbidden;
  size_t begin = 0;  // of the first block that has it
  uint32_t size = 0;
  for (size_t i = 0; i < values.size(); i += kBlock) {
    const auto block = values.subspan(i, std::min(kBlock, values.size() - i));
    size = std::max(size, largest_size(block));
    if (const float here = largest_value(block); here > most) {
      most = here;
      begin = i;
    }
  }
  const auto first =
      std::find(values.begin() + static_cast<std::ptrdiff_t>(begin), values.end(), most);
  return {first == values.end() ? 0 : static_cast<size_t>(first - values.begin()), size};
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
  return largest_size(logits) < kInfiniteSize;
}

Candidate first_broken(std::span<const float> logits, int32_t first_token) {
  const auto broken = std::find_if(logits.begin(), logits.end(),
                                   [](float logit) { return size_bits(logit) >= kInfiniteSize; });
  return {std::numeric_limits<float>::quiet_NaN(),
          first_token + static_cast<int32_t>(broken - logits.begin())};
}

Candidate largest(std::span<const float> logits, int32_t first_token) {
  const Top top = top_of(logits);
  if (top.size >= kInfiniteSize) return first_broken(logits, first_token);
  if (logits.empty()) return {};
  return {logits[top.index], first_token + static_cast<int32_t>(top.index)};
}

Candidate largest_allowed(std::span<const float> scores, int32_t first_token) {
  const Top top = top_of(scores);
  if (scores.empty() || scores[top.index] == kForbidden) return {kForbidden, -1};
  return {scores[top.index], first_token + static_cast<int32_t>(top.index)};
}

}  // namespace lockstep
