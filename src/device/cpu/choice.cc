#include "device/cpu/choice.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "kernels/kernels.h"

namespace lockstep {
namespace {

// The number that orders scores: larger for larger ones.
uint32_t order_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0;                  // a NaN
  if (magnitude < 0x00800000u) return 0x80000000u;        // zero, or less than a normal number
  return bits == magnitude ? bits | 0x80000000u : ~bits;  // negative numbers lie below
}

struct Threshold {
  uint32_t order = 0;
  int equals = 0;  // of those with this order, how many are chosen
};

// Digit by digit from the highest on: in which digit the count-th largest lies.
Threshold threshold_of(std::span<const float> scores, int count) {
  constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;
  Threshold threshold{.equals = count};
  for (int end = 32; end > 0; end = std::max(0, end - kDigitBits)) {
    const int shift = std::max(0, end - kDigitBits);
    const uint32_t above = end < 32 ? ~0u << end : 0;
    std::array<int, kDigits> found{};
    for (const float score : scores) {
      const uint32_t order = order_of(score);
      if ((order & above) == threshold.order) ++found[(order & ~above) >> shift];
    }
    size_t digit = (1u << (end - shift)) - 1;
    for (; found[digit] < threshold.equals; --digit) threshold.equals -= found[digit];
    threshold.order |= static_cast<uint32_t>(digit) << shift;
  }
  return threshold;
}

}  // namespace

void choose_best(std::span<const float> scores, int count, uint32_t* words) {
  LOCKSTEP_CHECK(count > 0 && static_cast<size_t>(count) < scores.size());
  constexpr size_t kBits = 32;
  const size_t pages = (scores.size() + kPagePositions - 1) / kPagePositions;
  Threshold threshold = threshold_of(scores, count);
  for (size_t word = 0; word < pages * kPagePositions / kBits; ++word) {
    words[word] = 0;
    for (size_t place = word * kBits; place < std::min(scores.size(), (word + 1) * kBits);
         ++place) {
      const uint32_t order = order_of(scores[place]);
      const bool is_equal = order == threshold.order && threshold.equals > 0;
      if (is_equal) --threshold.equals;
      if (is_equal || order > threshold.order) words[word] |= 1u << (place % kBits);
    }
  }
}

// From the last word on, so that a word of pools is read before it is overwritten.
void spread_pools(int complete, int pool, int position, uint32_t* words) {
  constexpr int kBits = 32;
  const int of_word = std::max(1, kBits / pool);  // pools
  const uint32_t all = pool >= kBits ? ~0u : (1u << pool) - 1;
  const int count = (position / kPagePositions + 1) * (kPagePositions / kBits);
  for (int word = count - 1; word >= 0; --word) {
    const int first = word * kBits / pool;
    uint32_t spread = 0;
    for (int i = 0; i < of_word && first + i < complete; ++i) {
      const int number = first + i;
      if ((words[number / kBits] >> (number % kBits)) & 1u) spread |= all << (i * pool % kBits);
    }
    words[word] = spread;
  }
  for (int place = complete * pool; place <= position; ++place) {
    words[place / kBits] |= 1u << (place % kBits);
  }
}

}  // namespace lockstep
