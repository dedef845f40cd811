// Keys and values as pages hold them, by definition: rounded in double precision instead of by
// bits, one number at a time. The kernel tests compare the kernels with it.
#pragma once

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace lockstep {

inline constexpr KvKind kKvKinds[] = {KvKind::kF32, KvKind::kBF16, KvKind::kF16, KvKind::kQ8};

struct TableAndKind {
  const KernelTable* table;
  KvKind kind;
};

inline std::vector<TableAndKind> tables_and_kinds() {
  std::vector<TableAndKind> all;
  for (const KernelTable* table : available_kernels()) {
    for (KvKind kind : kKvKinds) all.push_back({table, kind});
  }
  return all;
}

// The floating-point format with so many bits of significand, from 2^exponent_min on with all of
// them, up to `largest`.
struct RoundedFormat {
  int significand_bits;
  int exponent_min;
  double largest;
};
inline constexpr RoundedFormat kBf16Format{8, -126, 0x1.fep127};
inline constexpr RoundedFormat kF16Format{11, -14, 65504.0};

// The nearest number of the format, ties to even.
inline float rounded_to(const RoundedFormat& format, float x) {
  if (!std::isfinite(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), format.exponent_min);
  const double unit = std::ldexp(1.0, exponent - (format.significand_bits - 1));
  const double rounded = std::nearbyint(double{x} / unit) * unit;
  return static_cast<float>(std::clamp(rounded, -format.largest, format.largest));
}

// BF16, rounded up; x is positive.
inline float rounded_up_to_bf16(float x) {
  const float nearest = rounded_to(kBf16Format, x);
  if (nearest >= x) return nearest;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) + 0x10000u);
}

// One block of kQ8.
inline void round_q8(float* x, int count) {
  float most = 0;
  bool is_nan = false;
  for (int i = 0; i < count; ++i) {
    is_nan = is_nan || std::isnan(x[i]);
    most = std::max(most, std::fabs(x[i]));
  }
  if (is_nan || most >= kKvMost) {
    std::fill(x, x + count, NAN);
    return;
  }
  if (most < kBlockLeast) {
    std::fill(x, x + count, 0.0f);
    return;
  }
  const float scale = rounded_up_to_bf16(most / 127.0f);
  const float inverse = 1.0f / scale;
  for (int i = 0; i < count; ++i) x[i] = std::nearbyint(x[i] * inverse) * scale + 0.0f;
}

// The values that rows of `columns` numbers stand for once they are stored.
inline std::vector<float> rounded_rows(KvKind kind, std::vector<float> rows, int columns) {
  for (size_t begin = 0; begin < rows.size(); begin += static_cast<size_t>(columns)) {
    float* row = rows.data() + begin;
    for (int i = 0; i < columns; ++i) {
      if (kind == KvKind::kBF16) row[i] = rounded_to(kBf16Format, row[i]);
      if (kind == KvKind::kF16) row[i] = rounded_to(kF16Format, row[i]);
    }
    if (kind != KvKind::kQ8) continue;
    for (int i = 0; i < columns; i += kBlockColumns)
      round_q8(row + i, std::min(kBlockColumns, columns - i));
  }
  return rows;
}

// A stored 16-bit float.
inline float value_of_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}
inline float value_of_f16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return fraction != 0 ? NAN : static_cast<float>(sign * INFINITY);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return static_cast<float>(sign * magnitude);
}

}  // namespace lockstep
