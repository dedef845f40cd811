// Inputs for the kernel tests: random and nasty numbers, packed weights of every element type, and
// comparison of bits. Everything is computed without the C library's transcendental functions, so
// that inputs are the same on every machine.
#pragma once

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "tensor/dtype.h"

namespace lockstep {

class Random {  // splitmix64
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int below(int limit) { return static_cast<int>(bits() % static_cast<uint64_t>(limit)); }
  // A multiple of 2^-23 in [-1, 1).
  float unit() {
    return static_cast<float>(static_cast<int64_t>(bits() >> 40) - (1 << 23)) * 0x1p-23f;
  }
  std::vector<float> units(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = unit();
    return values;
  }

 private:
  uint64_t state_;
};

enum class Kind {
  kPlain,  // between -1 and 1
  kNasty,  // zeros of both signs, subnormal, tiny, large; sums do not overflow
};

inline float draw(Random& random, Kind kind) {
  if (kind == Kind::kPlain) return random.unit();
  switch (random.below(8)) {
    case 0:
      return 0.0f;
    case 1:
      return -0.0f;
    case 2:
      return random.unit() * 0x1p-130f;  // subnormal
    case 3:
      return random.unit() * 0x1p-70f;  // its products are subnormal
    case 4:
      return random.unit() * 0x1p12f;
    case 5:
      return random.unit() * 0x1p50f;
    default:
      return random.unit();
  }
}

// The value of a half precision number by its definition.
inline float half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return sign * (fraction != 0 ? NAN : INFINITY);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

// A matrix in the packed layout and, for references, its values row by row.
struct PackedMatrix {
  DType type;
  int rows;
  int columns;
  std::vector<std::byte> packed;
  std::vector<float> values;

  float at(int row, int column) const {
    return values[static_cast<size_t>(row) * static_cast<size_t>(columns) +
                  static_cast<size_t>(column)];
  }
  int tiles() const { return (rows + kLanes - 1) / kLanes; }
};

// A random element: its stored bits, and its value.
struct Element {
  uint32_t bits;
  float value;
};

inline Element draw_element(Random& random, DType type, Kind kind) {
  if (type == DType::kF16) {
    // Any finite half, subnormal ones included; plain ones stay below 1.
    const int exponent = kind == Kind::kPlain ? 8 + random.below(7) : random.below(31);
    const auto bits = static_cast<uint16_t>((random.bits() & 0x83ff) | (exponent << 10));
    return {bits, half_value(bits)};
  }
  const auto bits = std::bit_cast<uint32_t>(draw(random, kind));
  if (type == DType::kF32) return {bits, std::bit_cast<float>(bits)};
  return {bits >> 16, std::bit_cast<float>(bits & 0xffff0000u)};
}

inline PackedMatrix random_matrix(Random& random, DType type, int rows, int columns, Kind kind) {
  PackedMatrix matrix = {type, rows, columns, {}, {}};
  const size_t bytes = dtype_bytes(type);
  const size_t column_count = static_cast<size_t>(columns);
  matrix.packed.resize(static_cast<size_t>(matrix.tiles()) * column_count * kLanes * bytes);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const Element element = draw_element(random, type, kind);
      const size_t place =
          (static_cast<size_t>(row / kLanes) * column_count + static_cast<size_t>(column)) *
              kLanes +
          static_cast<size_t>(row % kLanes);
      const auto short_bits = static_cast<uint16_t>(element.bits);
      const void* from = bytes == 4 ? static_cast<const void*>(&element.bits) : &short_bits;
      std::memcpy(matrix.packed.data() + place * bytes, from, bytes);
      matrix.values.push_back(element.value);
    }
  }
  return matrix;
}

inline auto matmul_of(const KernelTable& table, DType type) {
  return type == DType::kF32   ? table.matmul_f32
         : type == DType::kF16 ? table.matmul_f16
                               : table.matmul_bf16;
}

inline auto embed_of(const KernelTable& table, DType type) {
  return type == DType::kF32   ? table.embed_f32
         : type == DType::kF16 ? table.embed_f16
                               : table.embed_bf16;
}

inline constexpr DType kAllTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

inline const KernelTable& scalar_kernels() {
  return *available_kernels().front();
}

// The index of the first element whose bits differ, or -1. All NaNs are one value.
inline int first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!both_nan && std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace lockstep
