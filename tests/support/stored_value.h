// stored_value: one element of a StoredMatrix in double, straight from the definition of its format
// in tensor/stored_matrix.h; for tests. Not for kGguf.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "tensor/half.h"
#include "tensor/stored_matrix.h"

namespace lockstep {

inline double e4m3_value(unsigned code) {
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  const int exponent = code >> 3 & 15, fraction = code & 7;
  if (exponent == 15 && fraction == 7) return NAN;
  if (exponent == 0) return sign * std::ldexp(fraction / 8.0, -6);
  return sign * std::ldexp(1 + fraction / 8.0, exponent - 7);
}

inline double e2m1_value(unsigned code) {
  constexpr double kMagnitudes[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
  return ((code & 8) != 0 ? -1 : 1) * kMagnitudes[code & 7];
}

inline unsigned byte_at(std::span<const std::byte> bytes, size_t index) {
  REQUIRE(index < bytes.size());
  return std::to_integer<unsigned>(bytes[index]);
}

// The `bits` bits from bit `first` on, the lowest bit of each byte first.
inline int64_t bits_at(std::span<const std::byte> bytes, size_t first, int bits) {
  int64_t value = 0;
  for (int i = 0; i < bits; ++i) {
    const size_t bit = first + static_cast<size_t>(i);
    value |= int64_t{byte_at(bytes, bit / 8) >> bit % 8 & 1} << i;
  }
  return value;
}

inline double scale_at(std::span<const std::byte> scales, DType type, size_t index) {
  if (type == DType::kF8E8M0) return std::ldexp(1, static_cast<int>(byte_at(scales, index)) - 127);
  if (type == DType::kF8E4M3) return e4m3_value(byte_at(scales, index));
  REQUIRE((index + 1) * dtype_bytes(type) <= scales.size());
  return load_element(scales.data(), type, index);
}

// Formats whose words lie along the columns: codes, zero points and scales transposed.
inline double transposed_value(const StoredMatrix& matrix, size_t row, size_t column) {
  const size_t rows = static_cast<size_t>(matrix.rows), bits = static_cast<size_t>(matrix.bits);
  const size_t per_word = 32 / bits;
  size_t group = column / static_cast<size_t>(matrix.group);
  if (!matrix.groups.empty()) {
    group = static_cast<size_t>(bits_at(matrix.groups, 32 * column, 32));
  }
  const double scale = scale_at(matrix.scales, matrix.scale_type, group * rows + row);
  if (matrix.format == StoredFormat::kGptq) {
    const size_t word = column / per_word * rows + row;
    const int64_t code = bits_at(matrix.codes, 32 * word + column % per_word * bits, matrix.bits);
    const int64_t zero = bits_at(matrix.zeros, (group * rows + row) * bits, matrix.bits);
    return static_cast<double>(code - zero - matrix.zero_bias) * scale;
  }
  constexpr size_t kPlaces[] = {0, 4, 1, 5, 2, 6, 3, 7};  // of the eight codes of a word
  const size_t place = 4 * kPlaces[row % 8];
  const int64_t code = bits_at(matrix.codes, 32 * (column * rows / 8 + row / 8) + place, 4);
  const int64_t zero = bits_at(matrix.zeros, 32 * (group * rows / 8 + row / 8) + place, 4);
  return static_cast<double>(code - zero) * scale;
}

inline double packed_int_value(const StoredMatrix& matrix, size_t row, size_t column, size_t group,
                               size_t groups, double scale) {
  const size_t bits = static_cast<size_t>(matrix.bits);
  const int64_t code =
      bits_at(matrix.codes, 8 * row * matrix.row_bytes + column * bits, matrix.bits);
  int64_t zero = int64_t{1} << (matrix.bits - 1);
  if (!matrix.zeros.empty()) {
    const size_t per_word = 32 / bits;
    const size_t word = row / per_word * groups + group;
    zero = bits_at(matrix.zeros, 32 * word + row % per_word * bits, matrix.bits);
  }
  return static_cast<double>(code - zero) * scale;
}

inline double stored_value(const StoredMatrix& matrix, int matrix_row, int matrix_column) {
  const auto row = static_cast<size_t>(matrix.stored_row(matrix_row));
  const auto column = static_cast<size_t>(matrix_column);
  const size_t row_bits = 8 * row * matrix.row_bytes;
  if (matrix.format == StoredFormat::kPlain) {
    const size_t offset = row * matrix.row_bytes;
    return scale_at(matrix.codes.subspan(offset), matrix.scale_type, column);
  }
  if (matrix.format == StoredFormat::kGptq || matrix.format == StoredFormat::kAwq) {
    return transposed_value(matrix, row, column);
  }
  const auto columns = static_cast<size_t>(matrix.columns);
  const size_t group_columns = matrix.group == 0 ? columns : static_cast<size_t>(matrix.group);
  const size_t groups = (columns + group_columns - 1) / group_columns;
  const size_t group = column / group_columns;
  const size_t scale_row = matrix.row_group == 0 ? 0 : row / static_cast<size_t>(matrix.row_group);
  const size_t scale_index = scale_row * groups + group;
  const double scale = scale_at(matrix.scales, matrix.scale_type, scale_index);
  if (matrix.format == StoredFormat::kPackedInt) {
    return packed_int_value(matrix, row, column, group, groups, scale);
  }
  const int64_t code =
      bits_at(matrix.codes, row_bits + column * static_cast<size_t>(matrix.bits), matrix.bits);
  const auto bits = static_cast<unsigned>(code);
  if (matrix.format == StoredFormat::kFp8) return e4m3_value(bits) * scale * matrix.factor;
  if (matrix.format == StoredFormat::kFp4) return e2m1_value(bits) * scale * matrix.factor;
  REQUIRE(matrix.format == StoredFormat::kAffine);
  const double bias = scale_at(matrix.biases, matrix.scale_type, scale_index);
  return static_cast<double>(code) * scale + bias;
}

}  // namespace lockstep
