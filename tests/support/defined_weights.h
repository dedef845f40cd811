// The weights of a stored matrix by the definition of each format: element by element in double,
// using nothing of src/ except the shape and half floats.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "tensor/half.h"
#include "tensor/stored_matrix.h"

namespace lockstep::testing {

inline int byte_of(const std::byte* from, size_t index) {
  return static_cast<int>(from[index]);
}
// Ends the test if a part is shorter than the matrix. Without REQUIRE, which is slow even on
// success: these are innermost loops.
inline void expect_inside(size_t end, std::span<const std::byte> part) {
  if (end > part.size()) FAIL("a part of a stored matrix ends at ", part.size(), ", before ", end);
}
inline uint32_t word_of(std::span<const std::byte> from, size_t index) {
  expect_inside((index + 1) * 4, from);
  uint32_t word;
  std::memcpy(&word, from.data() + index * 4, 4);
  return word;
}
inline double half_of(const std::byte* from, size_t offset) {
  return static_cast<double>(load_element(from + offset, DType::kF16, 0));
}
inline double e4m3_of(int bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return bits & 128 ? -magnitude : magnitude;
}
inline double e2m1_of(int code) {
  constexpr double kValues[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -kValues[code & 7] : kValues[code & 7];
}
inline double e8m0_of(int bits) {
  return std::ldexp(1.0, bits - 127);
}
inline int iq4_of(int code) {
  constexpr int kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};
  return kValues[code];
}

// Element `index` of the scales or biases.
inline double number_of(const StoredMatrix& matrix, std::span<const std::byte> part, size_t index) {
  expect_inside((index + 1) * dtype_bytes(matrix.scale_type), part);
  if (matrix.scale_type == DType::kF8E8M0) return e8m0_of(byte_of(part.data(), index));
  if (matrix.scale_type == DType::kF8E4M3) return e4m3_of(byte_of(part.data(), index));
  return static_cast<double>(load_element(part.data(), matrix.scale_type, index));
}

// Bit by bit.
inline int stream_code(const std::byte* row, int column, int bits) {
  int code = 0;
  for (int bit = 0; bit < bits; ++bit) {
    const size_t at =
        static_cast<size_t>(column) * static_cast<size_t>(bits) + static_cast<size_t>(bit);
    code |= (byte_of(row, at / 8) >> (at % 8) & 1) << bit;
  }
  return code;
}

// The sixteen low and sixteen high nibbles of 32 columns.
inline int split_nibble(const std::byte* from, int e) {
  return e < 16 ? byte_of(from, static_cast<size_t>(e)) & 15
                : byte_of(from, static_cast<size_t>(e - 16)) >> 4;
}
inline int split_five(const std::byte* block, size_t bits_at, int e) {
  const auto at = static_cast<size_t>(e);
  return split_nibble(block + bits_at + 4, e) +
         ((byte_of(block, bits_at + at / 8) >> (at % 8) & 1) << 4);
}

// The six-bit s and t of the eight parts of Q4_K and Q5_K.
inline double six_bits(const std::byte* packed, size_t part, bool is_minimum) {
  if (part < 4) return byte_of(packed, is_minimum ? part + 4 : part) & 63;
  const int low = is_minimum ? byte_of(packed, part + 4) >> 4 : byte_of(packed, part + 4) & 15;
  const int high = byte_of(packed, is_minimum ? part : part - 4) >> 6;
  return low + 16 * high;
}

// A weight of a block of 256; e is its column in the block.
inline double super_block_weight(uint32_t type, const std::byte* block, size_t e) {
  const size_t part = e / 32, l = e % 32, hundred = e / 128;
  const size_t two_bits = 2 * (e % 128 / 32);
  const auto nibble = [&](size_t at) {
    return byte_of(block, at + part / 2 * 32 + l) >> (part % 2 == 0 ? 0 : 4) & 15;
  };
  if (type == 10) {
    const int scales = byte_of(block, e / 16);
    const int code = byte_of(block, 16 + hundred * 32 + l) >> two_bits & 3;
    return half_of(block, 80) * (scales & 15) * code - half_of(block, 82) * (scales >> 4);
  }
  if (type == 11) {
    const int low = byte_of(block, 32 + hundred * 32 + l) >> two_bits & 3;
    const int code = low - ((byte_of(block, l) >> part & 1) != 0 ? 0 : 4);
    const size_t s = e / 16;
    const int bits_0_3 = byte_of(block, 96 + s % 8) >> (s < 8 ? 0 : 4) & 15;
    const int bits_4_5 = byte_of(block, 104 + s % 4) >> (2 * (s / 4)) & 3;
    return half_of(block, 108) * (bits_0_3 + 16 * bits_4_5 - 32) * code;
  }
  if (type == 12) {
    return half_of(block, 0) * six_bits(block + 4, part, false) * nibble(16) -
           half_of(block, 2) * six_bits(block + 4, part, true);
  }
  if (type == 13) {
    const int code = nibble(48) + 16 * (byte_of(block, 16 + l) >> part & 1);
    return half_of(block, 0) * six_bits(block + 4, part, false) * code -
           half_of(block, 2) * six_bits(block + 4, part, true);
  }
  if (type == 14) {
    const size_t quarter = e % 128 / 32;
    const int low = byte_of(block, hundred * 64 + quarter % 2 * 32 + l) >> (quarter < 2 ? 0 : 4);
    const int high = byte_of(block, 128 + hundred * 32 + l) >> (2 * quarter) & 3;
    const auto scale = static_cast<int8_t>(byte_of(block, 192 + e / 16));
    return half_of(block, 208) * scale * ((low & 15) + 16 * high - 32);
  }
  const int low = byte_of(block, 4 + part / 2) >> (4 * (part % 2)) & 15;  // IQ4_XS
  const int high = (byte_of(block, 2) + 256 * byte_of(block, 3)) >> (2 * part) & 3;
  return half_of(block, 0) * (low + 16 * high - 32) *
         iq4_of(split_nibble(block + 8 + 16 * part, static_cast<int>(l)));
}

inline double gguf_weight(const StoredMatrix& matrix, const std::byte* row, int column) {
  const auto at = static_cast<size_t>(column), block = at / 32;
  const int e = column % 32;
  switch (matrix.gguf_type) {
    case 0:
      return static_cast<double>(load_element(row, DType::kF32, at));
    case 1:
      return half_of(row, at * 2);
    case 30:
      return static_cast<double>(load_element(row, DType::kBF16, at));
    case 2:
      return half_of(row, block * 18) * (split_nibble(row + block * 18 + 2, e) - 8);
    case 3:
      return half_of(row, block * 20) * split_nibble(row + block * 20 + 4, e) +
             half_of(row, block * 20 + 2);
    case 6:
      return half_of(row, block * 22) * (split_five(row + block * 22, 2, e) - 16);
    case 7:
      return half_of(row, block * 24) * split_five(row + block * 24, 4, e) +
             half_of(row, block * 24 + 2);
    case 8:
      return half_of(row, block * 34) *
             static_cast<int8_t>(byte_of(row, block * 34 + 2 + static_cast<size_t>(e)));
    case 20:
      return half_of(row, block * 18) * iq4_of(split_nibble(row + block * 18 + 2, e));
    case 39:
      return e8m0_of(byte_of(row, block * 17)) * e2m1_of(split_nibble(row + block * 17 + 1, e));
    default:
      break;
  }
  constexpr size_t kBytes[] = {84, 110, 144, 176, 210};
  const size_t bytes = matrix.gguf_type == 23 ? 136 : kBytes[matrix.gguf_type - 10];
  return super_block_weight(matrix.gguf_type, row + at / 256 * bytes, at % 256);
}

// GPTQ and AWQ, where rows are adjacent within a word.
inline double by_column_weight(const StoredMatrix& matrix, size_t row, size_t column) {
  const auto rows = static_cast<size_t>(matrix.rows), bits = static_cast<size_t>(matrix.bits);
  size_t group = matrix.group == 0 ? 0 : column / static_cast<size_t>(matrix.group);
  if (!matrix.groups.empty()) group = word_of(matrix.groups, column);
  const size_t per_word = 32 / bits, words = (rows + per_word - 1) / per_word;
  const uint32_t mask = (1u << bits) - 1;
  const double scale = number_of(matrix, matrix.scales, group * rows + row);
  uint32_t code = 0, zero = 1u << (bits - 1);
  if (matrix.format == StoredFormat::kAwq) {
    constexpr size_t kOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};  // the row in each nibble
    size_t nibble = 0;
    while (kOrder[nibble] != row % 8) ++nibble;
    code = word_of(matrix.codes, column * words + row / 8) >> (4 * nibble) & 15;
    if (!matrix.zeros.empty()) {
      zero = word_of(matrix.zeros, group * words + row / 8) >> (4 * nibble) & 15;
    }
  } else {
    code = word_of(matrix.codes, column / per_word * rows + row) >> (column % per_word * bits);
    code &= mask;
    if (!matrix.zeros.empty()) {
      zero = word_of(matrix.zeros, group * words + row / per_word) >> (row % per_word * bits);
      zero = (zero & mask) + static_cast<uint32_t>(matrix.zero_bias);
    }
  }
  return (static_cast<double>(code) - static_cast<double>(zero)) * scale;
}

inline double packed_int_weight(const StoredMatrix& matrix, size_t row, int column, int code,
                                double scale, size_t groups) {
  const auto bits = static_cast<size_t>(matrix.bits), per_word = 32 / bits;
  int zero = 1 << (bits - 1);
  if (!matrix.zeros.empty()) {
    const size_t group =
        matrix.group == 0 ? 0 : static_cast<size_t>(column) / static_cast<size_t>(matrix.group);
    const uint32_t word = word_of(matrix.zeros, row / per_word * groups + group);
    zero = static_cast<int>(word >> (row % per_word * bits) & ((1u << bits) - 1));
  }
  return (code - zero) * scale;
}

// The bytes of a row up to a column; padding may follow the last one.
inline size_t used_bytes(const StoredMatrix& matrix, size_t column) {
  if (matrix.format == StoredFormat::kGguf) return matrix.row_bytes;
  if (matrix.format == StoredFormat::kPlain) return (column + 1) * dtype_bytes(matrix.scale_type);
  if (matrix.format == StoredFormat::kFp8) return column + 1;
  const size_t bits = matrix.format == StoredFormat::kFp4 ? 4 : static_cast<size_t>(matrix.bits);
  return ((column + 1) * bits + 7) / 8;
}

inline double defined_weight(const StoredMatrix& matrix, int row, int column) {
  const auto stored_row =
      static_cast<size_t>(matrix.row_map.empty() ? row : matrix.row_map[static_cast<size_t>(row)]);
  const auto at = static_cast<size_t>(column);
  const bool is_by_column =
      matrix.format == StoredFormat::kGptq || matrix.format == StoredFormat::kAwq;
  if (is_by_column) return by_column_weight(matrix, stored_row, at);
  expect_inside(stored_row * matrix.row_bytes + used_bytes(matrix, at), matrix.codes);
  const std::byte* from = matrix.codes.data() + stored_row * matrix.row_bytes;
  if (matrix.format == StoredFormat::kGguf) return gguf_weight(matrix, from, column);
  if (matrix.format == StoredFormat::kPlain) {
    return static_cast<double>(load_element(from, matrix.scale_type, at)) *
           static_cast<double>(matrix.factor);
  }
  const auto group = static_cast<size_t>(matrix.group == 0 ? matrix.columns : matrix.group);
  const size_t groups = (static_cast<size_t>(matrix.columns) + group - 1) / group;
  const size_t row_group =
      matrix.row_group == 0 ? 0 : stored_row / static_cast<size_t>(matrix.row_group);
  const size_t index = row_group * groups + at / group;
  const double scale = number_of(matrix, matrix.scales, index);
  const double factor = static_cast<double>(matrix.factor);
  switch (matrix.format) {
    case StoredFormat::kAffine:
      return stream_code(from, column, matrix.bits) * scale +
             number_of(matrix, matrix.biases, index);
    case StoredFormat::kFp8:
      return e4m3_of(byte_of(from, at)) * scale * factor;
    case StoredFormat::kFp4:
      return e2m1_of(stream_code(from, column, 4)) * scale * factor;
    default:
      return packed_int_weight(matrix, stored_row, column, stream_code(from, column, matrix.bits),
                               scale, groups);
  }
}

}  // namespace lockstep::testing
