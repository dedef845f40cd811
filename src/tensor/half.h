// Exact conversions of single stored values to float, for norms and other small weights. The
// kernels have their own.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

namespace lockstep {

inline float float_of_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

inline float float_of_f16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} >> 15 << 31;
  const uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24 is exact
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

template <class Number>
Number load_number(const std::byte* data, size_t index) {
  Number value;
  std::memcpy(&value, data + index * sizeof(Number), sizeof(Number));
  return value;
}

// The value of element `index` of a stored array, which need not be aligned.
inline float load_element(const std::byte* data, DType dtype, size_t index) {
  if (dtype == DType::kF32) return load_number<float>(data, index);
  if (dtype == DType::kI32) return static_cast<float>(load_number<int32_t>(data, index));
  if (dtype == DType::kI64) return static_cast<float>(load_number<int64_t>(data, index));
  const auto bits = load_number<uint16_t>(data, index);
  return dtype == DType::kF16 ? float_of_f16(bits) : float_of_bf16(bits);
}

}  // namespace lockstep
