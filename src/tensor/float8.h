// The 8-bit floats of the OCP formats, and their values.
// https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace lockstep {

// One sign, four exponent and three fraction bits, no infinity.
constexpr float float_of_e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const float sign = bits >> 7 != 0 ? -1.0f : 1.0f;
  if (exponent == 15 && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * static_cast<float>(fraction) * 0x1p-9f;
  const auto wide = static_cast<uint32_t>(exponent + 120);
  return sign * std::bit_cast<float>(wide << 23 | static_cast<uint32_t>(fraction) << 20);
}

// A power of two. A double, because the smallest one is not a normal float.
constexpr double double_of_e8m0(uint8_t bits) {
  if (bits == 255) return std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<double>((uint64_t{bits} + (1023 - 127)) << 52);
}

}  // namespace lockstep
