// Fixed inputs of kernels: random and nasty numbers, packed weights of every plain element type.
// They are the same on every machine, because no transcendental function of the C library is used.
// For the fixed answers (kernels/answers/fixed_answers.h) and the kernel tests; values, any thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/kernels.h"

namespace lockstep {

class SampleRandom {  // splitmix64
 public:
  explicit SampleRandom(uint64_t seed) : state_(seed) {}

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

enum class SampleKind {
  kPlain,  // between -1 and 1
  kNasty,  // zeros of both signs, subnormal, tiny, large; sums do not overflow
};

inline float draw(SampleRandom& random, SampleKind kind) {
  if (kind == SampleKind::kPlain) return random.unit();
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

// The value of an E4M3 number.
inline double fp8_value(int bits) {
  const int exponent = (bits >> 3) & 15;
  const double fraction = (bits & 7) * 0.125;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, exponent - 7);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

// A matrix by column in the packed layout and, for references, its values row by row.
struct MatrixByColumn {
  PackedCodes type;
  int rows;
  int columns;
  std::vector<std::byte> packed;
  std::vector<float> values;

  float at(int row, int column) const {
    return values[static_cast<size_t>(row) * static_cast<size_t>(columns) +
                  static_cast<size_t>(column)];
  }
  int tiles() const { return (rows + kLanes - 1) / kLanes; }
  PackedMatrix view(const std::vector<LeafStep>& steps) const;
};

// A matrix by column as the kernels see it; nothing is copied.
inline PackedMatrix view_by_column(PackedCodes type, const void* packed, int rows, int columns,
                                   const std::vector<LeafStep>& steps) {
  return {.codes = type,
          .scales = PackedScales::kNone,
          .rows = rows,
          .columns = columns,
          .tiles = static_cast<const std::byte*>(packed),
          .tile_bytes = static_cast<size_t>(columns) * column_bytes(type),
          .steps = steps.data(),
          .step_count = static_cast<int32_t>(steps.size())};
}

inline PackedMatrix MatrixByColumn::view(const std::vector<LeafStep>& steps) const {
  return view_by_column(type, packed.data(), rows, columns, steps);
}

// A random element: its stored bits and its value.
struct SampleElement {
  uint32_t bits;
  float value;
};

inline SampleElement draw_element(SampleRandom& random, PackedCodes type, SampleKind kind) {
  if (type == PackedCodes::kF16) {
    // Any finite half, subnormal ones included; plain ones stay below 1.
    const int exponent = kind == SampleKind::kPlain ? 8 + random.below(7) : random.below(31);
    const auto bits = static_cast<uint16_t>((random.bits() & 0x83ff) | (exponent << 10));
    return {bits, half_value(bits)};
  }
  const auto bits = std::bit_cast<uint32_t>(draw(random, kind));
  if (type == PackedCodes::kF32) return {bits, std::bit_cast<float>(bits)};
  return {bits >> 16, std::bit_cast<float>(bits & 0xffff0000u)};
}

// Coded columns: a scale and a bias for the rows of each tile.
inline void fill_coded(SampleRandom& random, SampleKind kind, MatrixByColumn& matrix) {
  const auto columns = static_cast<size_t>(matrix.columns);
  const bool is_fp8 = matrix.type == PackedCodes::kColumnFp8;
  const bool are_nibbles = matrix.type == PackedCodes::kColumnBits4;
  matrix.values.resize(static_cast<size_t>(matrix.rows) * columns);
  std::byte* to = matrix.packed.data();
  for (size_t at = 0; at < static_cast<size_t>(matrix.tiles()) * columns; ++at) {
    const ColumnScale by{draw(random, kind), draw(random, kind)};
    uint8_t codes[kLanes] = {};
    for (size_t lane = 0; lane < kLanes; ++lane) {
      int code = random.below(are_nibbles ? 16 : 256);
      if (is_fp8 && (code & 0x7f) == 0x7f) code = 0;  // a NaN
      uint8_t& place = codes[are_nibbles ? lane / 2 : lane];
      place = static_cast<uint8_t>(place | code << (are_nibbles ? 4 * (lane % 2) : 0));
      const size_t row = at / columns * kLanes + lane;
      if (row >= static_cast<size_t>(matrix.rows)) continue;
      matrix.values[row * columns + at % columns] =
          std::fma(by.scale, static_cast<float>(is_fp8 ? fp8_value(code) : code), by.bias);
    }
    std::memcpy(to, &by, sizeof by);
    std::memcpy(to + sizeof by, codes, column_bytes(matrix.type) - sizeof by);
    to += column_bytes(matrix.type);
  }
}

inline MatrixByColumn random_matrix(SampleRandom& random, PackedCodes type, int rows, int columns,
                                    SampleKind kind) {
  MatrixByColumn matrix = {type, rows, columns, {}, {}};
  const size_t column_count = static_cast<size_t>(columns);
  matrix.packed.resize(static_cast<size_t>(matrix.tiles()) * column_count * column_bytes(type));
  if (has_coded_columns(type)) {
    fill_coded(random, kind, matrix);
    return matrix;
  }
  const size_t bytes = column_bytes(type) / kLanes;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const SampleElement element = draw_element(random, type, kind);
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

inline constexpr PackedCodes kCodesByColumn[] = {
    PackedCodes::kF32,         PackedCodes::kF16,         PackedCodes::kBF16,
    PackedCodes::kColumnBits4, PackedCodes::kColumnBits8, PackedCodes::kColumnFp8};

// Steps that add `leaves` in one tree: after leaf i as many sums are merged as i + 1 has trailing
// zeros; after the last one the rest is merged from right to left.
inline void append_subtree(std::vector<LeafStep>& steps, const std::vector<int>& leaves) {
  for (size_t i = 0; i < leaves.size(); ++i) {
    const bool is_last = i + 1 == leaves.size();
    const int open = std::popcount(i) + 1;
    const int merges = is_last ? open - 1 : std::countr_one(i);
    steps.push_back({leaves[i], merges, is_last ? 1 : 0});
  }
}

struct SamplePlan {
  int columns = 0;
  int subtrees = 0;
  std::vector<LeafStep> steps;
};

inline SamplePlan plan_of(const std::vector<std::vector<int>>& subtrees) {
  SamplePlan plan;
  for (const std::vector<int>& leaves : subtrees) {
    append_subtree(plan.steps, leaves);
    for (int columns : leaves) plan.columns += columns;
    ++plan.subtrees;
  }
  return plan;
}

}  // namespace lockstep
