#include "model/ngrams/ngram_config.h"

#include <fmt/core.h>

namespace lockstep {
namespace {

constexpr int64_t kHashSeed = 1234;
constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

// https://prng.di.unimi.it/splitmix64.c
uint64_t splitmix64(uint64_t x) {
  x += kGolden;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

bool is_prime(int64_t number) {
  if (number < 2) return false;
  for (int64_t divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return true;
}

// The first `count` primes from `base` on.
std::vector<int64_t> primes_from(int64_t base, int count) {
  std::vector<int64_t> primes;
  for (int64_t number = base; primes.size() < static_cast<size_t>(count); ++number) {
    if (is_prime(number)) primes.push_back(number);
  }
  return primes;
}

}  // namespace

NgramConstants published_constants(const NgramConfig& config, int vocab_size) {
  NgramConstants constants;
  const int64_t half = INT64_MAX / vocab_size / 2;
  for (int i = 0; i < config.size; ++i) {
    const uint64_t seed = uint64_t{kHashSeed} + kGolden * static_cast<uint64_t>(i + 1);
    const uint64_t number = splitmix64(seed) % static_cast<uint64_t>(half);
    constants.multipliers.push_back(2 * static_cast<int64_t>(number) + 1);
  }
  constants.rows = primes_from(config.base, config.heads);
  for (int64_t offset = 0; const int64_t rows : constants.rows) {
    constants.offsets.push_back(offset);
    offset += rows;
  }
  return constants;
}

Status check_constants(const NgramConstants& constants, const NgramConfig& config, int vocab_size) {
  const int64_t all = int64_t{config.parts} * config.part_rows;
  for (size_t head = 0; head < constants.rows.size(); ++head) {
    const int64_t rows = constants.rows[head], offset = constants.offsets[head];
    if (rows < 1 || offset < 0 || rows > all || offset > all - rows) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("head {} of the n-grams has {} rows from {} on, the table has {}",
                               head, rows, offset, all)};
    }
  }
  for (const int64_t multiplier : constants.multipliers) {
    if (multiplier >= 0 && multiplier <= INT64_MAX / vocab_size) continue;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the multiplier {} of the n-grams is not possible", multiplier)};
  }
  return Ok{};
}

int64_t used_rows(int64_t base, int heads) {
  int64_t sum = 0;
  for (const int64_t rows : primes_from(base, heads)) sum += rows;
  return sum;
}

void append_rows(const NgramConfig& config, const NgramConstants& constants, int32_t token,
                 const int32_t* before, std::vector<int32_t>& rows) {
  const int of_length = config.heads / (config.size - 1);
  int64_t mixed = int64_t{token} * constants.multipliers[0];
  bool has_ended = false;
  auto head = static_cast<size_t>(0);
  for (int i = 1; i < config.size; ++i) {
    has_ended = has_ended || before[i - 1] == kNoToken || before[i - 1] == config.end_token;
    const int64_t own = has_ended ? config.end_token : before[i - 1];
    mixed ^= own * constants.multipliers[static_cast<size_t>(i)];
    for (int h = 0; h < of_length; ++h, ++head) {
      rows.push_back(static_cast<int32_t>(mixed % constants.rows[head] + constants.offsets[head]));
    }
  }
}

}  // namespace lockstep
