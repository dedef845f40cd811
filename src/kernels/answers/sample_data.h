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

inline size_t element_bytes(PackedCodes type) {
  return type == PackedCodes::kF32 ? 4 : 2;
}

// A matrix of plain elements in the packed layout and, for references, its values row by row.
struct PlainMatrix {
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

// Plain elements as the kernels see them; nothing is copied.
inline PackedMatrix plain_view(PackedCodes type, const void* packed, int rows, int columns,
                               const std::vector<LeafStep>& steps) {
  return {.codes = type,
          .scales = PackedScales::kNone,
          .rows = rows,
          .columns = columns,
          .tiles = static_cast<const std::byte*>(packed),
          .tile_bytes = static_cast<size_t>(columns) * kLanes * element_bytes(type),
          .steps = steps.data(),
          .step_count = static_cast<int32_t>(steps.size())};
}

inline PackedMatrix PlainMatrix::view(const std::vector<LeafStep>& steps) const {
  return plain_view(type, packed.data(), rows, columns, steps);
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

inline PlainMatrix random_matrix(SampleRandom& random, PackedCodes type, int rows, int columns,
                                 SampleKind kind) {
  PlainMatrix matrix = {type, rows, columns, {}, {}};
  const size_t bytes = element_bytes(type);
  const size_t column_count = static_cast<size_t>(columns);
  matrix.packed.resize(static_cast<size_t>(matrix.tiles()) * column_count * kLanes * bytes);
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

inline constexpr PackedCodes kPlainCodes[] = {PackedCodes::kF32, PackedCodes::kF16,
                                              PackedCodes::kBF16};

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
