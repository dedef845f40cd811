// encode_matrix: writes a matrix in any stored format, rounded to the nearest codes, for tests. It
// is not a good quantiser. Scales are chosen first; then two codes are tried for every element, and
// their values by the format's definition (defined_weights.h) tell which is nearer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "support/defined_weights.h"
#include "support/reference_llama.h"
#include "support/stored_matrices.h"

namespace lockstep::testing {

// `count` bits starting at bit `first`, the lowest bit of each byte first.
inline void put_bits(std::vector<std::byte>& bytes, size_t first, int count, uint32_t value) {
  for (int i = 0; i < count; ++i) {
    const size_t bit = first + static_cast<size_t>(i);
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    if ((value >> i & 1) != 0) {
      bytes[bit / 8] |= mask;
    } else {
      bytes[bit / 8] &= ~mask;
    }
  }
}

inline uint16_t f16_of(double value) {
  const double magnitude = std::abs(value);
  const int exponent = magnitude == 0 ? -14 : std::max(-14, std::ilogb(magnitude));
  const auto fraction = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // A fraction of 2048 carries into the exponent, as it should.
  const int bits = (exponent + 14) * 1024 + fraction;
  return static_cast<uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0));
}

// The smallest power of two that is not less.
inline int e8m0_above(double value) {
  if (value <= 0) return 0;
  return 127 + static_cast<int>(std::ceil(std::log2(value)));
}

inline void put_number(std::vector<std::byte>& bytes, size_t index, DType type, double value) {
  const size_t size = dtype_bytes(type);
  uint32_t bits = 0;
  if (type == DType::kF32 || type == DType::kBF16) {
    bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    if (type == DType::kBF16) bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  } else if (type == DType::kF16) {
    bits = f16_of(value);
  } else if (type == DType::kF8E8M0) {
    bits = static_cast<uint32_t>(e8m0_above(value));
  } else {
    // Positive E4M3, rounded up so that codes do not overflow.
    while (bits < 126 && e4m3_of(static_cast<int>(bits)) < value) ++bits;
  }
  put_bits(bytes, index * size * 8, static_cast<int>(8 * size), bits);
}

struct EncodedMatrix {
  StoredMatrix matrix;  // its parts point to the vectors below
  std::vector<std::byte> codes, scales, biases, zeros, groups;

  EncodedMatrix() = default;
  EncodedMatrix(const EncodedMatrix&) = delete;
  EncodedMatrix(EncodedMatrix&&) = default;

  DenseMatrix values() const {
    DenseMatrix dense{static_cast<size_t>(matrix.rows), static_cast<size_t>(matrix.columns), {}};
    for (int row = 0; row < matrix.rows; ++row) {
      for (int i = 0; i < matrix.columns; ++i)
        dense.values.push_back(defined_weight(matrix, row, i));
    }
    return dense;
  }
};

// Where a ggml block stores the code of column e: its low bits, and its high bits if they are
// separate.
struct CodePlace {
  size_t low_bit;
  int low_count;
  size_t high_bit = 0;
  int high_count = 0;
};
inline CodePlace code_place(uint32_t type, size_t e) {
  const size_t part = e / 32, l = e % 32, hundred = e / 128, quarter = e % 128 / 32;
  const auto split = [](size_t at, size_t column) {
    return (at + column % 16) * 8 + (column < 16 ? 0 : 4);
  };
  const size_t two_bits = (hundred * 32 + l) * 8 + 2 * quarter;
  const size_t nibble = (part / 2 * 32 + l) * 8 + part % 2 * 4;
  switch (type) {
    case 2:
    case 20:
      return {split(2, e), 4};
    case 3:
      return {split(4, e), 4};
    case 6:
      return {split(6, e), 4, 16 + e, 1};
    case 7:
      return {split(8, e), 4, 32 + e, 1};
    case 8:
      return {(2 + e) * 8, 8};
    case 39:
      return {split(1, e), 4};
    case 10:
      return {16 * 8 + two_bits, 2};
    case 11:
      return {32 * 8 + two_bits, 2, l * 8 + part, 1};
    case 12:
      return {16 * 8 + nibble, 4};
    case 13:
      return {48 * 8 + nibble, 4, (16 + l) * 8 + part, 1};
    case 14:
      return {(hundred * 64 + quarter % 2 * 32 + l) * 8 + quarter / 2 * 4, 4, 128 * 8 + two_bits,
              2};
    default:
      return {split(8 + 16 * part, l), 4};  // IQ4_XS
  }
}

// The value of each code before scale and bias.
inline std::vector<double> code_levels(const FormatCase& format) {
  const uint32_t type = format.format == StoredFormat::kGguf ? format.gguf_type : 0;
  const bool is_fp8 = format.format == StoredFormat::kFp8;
  const bool is_fp4 = format.format == StoredFormat::kFp4 || type == 39;
  int bits = is_fp8 ? 8 : is_fp4 ? 4 : format.bits;
  if (type != 0) bits = code_place(type, 0).low_count + code_place(type, 0).high_count;
  std::vector<double> levels;
  for (int code = 0; code < 1 << bits; ++code) {
    double level = code;
    if (is_fp8) level = code % 128 == 127 ? std::nan("") : e4m3_of(code);
    if (is_fp4) level = e2m1_of(code);
    if (type == 20 || type == 23) level = iq4_of(code);
    if (type == 8) level = static_cast<int8_t>(code);
    levels.push_back(level);
  }
  return levels;
}

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
  // The element furthest from zero, with its sign.
  double furthest() const { return -low > high ? low : high; }
};

class MatrixEncoder {
 public:
  MatrixEncoder(const FormatCase& format, const DenseMatrix& dense)
      : format_(format), dense_(dense) {
    StoredMatrix& matrix = result_.matrix;
    matrix.format = format.format;
    matrix.rows = static_cast<int>(dense.rows);
    matrix.columns = static_cast<int>(dense.columns);
    matrix.bits = format.bits;
    matrix.group = format.group;
    matrix.row_group = format.row_group;
    matrix.scale_type = format.scale_type;
    matrix.zero_bias = format.zero_bias;
    matrix.gguf_type = format.gguf_type;
  }

  EncodedMatrix encode() {
    if (format_.format == StoredFormat::kPlain) {
      encode_plain(format_.scale_type);
    } else if (format_.format != StoredFormat::kGguf) {
      allocate();
      set_scales();
      set_codes();
    } else if (const auto type = plain_gguf_type()) {
      encode_plain(*type);
    } else {
      allocate();
      for (size_t row = 0; row < dense_.rows; ++row) {
        const size_t block_columns = static_cast<size_t>(gguf_shape(format_.gguf_type).columns);
        for (size_t i = 0; i < dense_.columns; i += block_columns) set_block_scales(row, i);
      }
      set_codes();
    }
    return std::move(result_);
  }

 private:
  using Bytes = std::vector<std::byte>;

  std::optional<DType> plain_gguf_type() const {
    if (format_.gguf_type == 0) return DType::kF32;
    if (format_.gguf_type == 1) return DType::kF16;
    if (format_.gguf_type == 30) return DType::kBF16;
    return std::nullopt;
  }
  void encode_plain(DType type) {
    result_.matrix.row_bytes = dense_.columns * dtype_bytes(type);
    add(result_.codes, dense_.rows * result_.matrix.row_bytes, result_.matrix.codes);
    for (size_t i = 0; i < dense_.values.size(); ++i) {
      put_number(result_.codes, i, type, dense_.values[i]);
    }
  }

  static void add(Bytes& bytes, size_t size, std::span<const std::byte>& part) {
    bytes.resize(size);
    part = bytes;
  }
  size_t groups() const {
    return format_.group == 0 ? 1 : dense_.columns / static_cast<size_t>(format_.group);
  }
  size_t row_group() const {
    return format_.row_group == 0 ? dense_.rows : static_cast<size_t>(format_.row_group);
  }
  bool is_by_column() const {
    return format_.format == StoredFormat::kGptq || format_.format == StoredFormat::kAwq;
  }
  size_t group_of(size_t column) const {
    if (!result_.groups.empty()) return word_of(result_.groups, column);
    return format_.group == 0 ? 0 : column / static_cast<size_t>(format_.group);
  }

  void allocate() {
    StoredMatrix& matrix = result_.matrix;
    if (format_.format == StoredFormat::kGguf) {
      const GgufShape& shape = gguf_shape(format_.gguf_type);
      matrix.row_bytes =
          dense_.columns / static_cast<size_t>(shape.columns) * static_cast<size_t>(shape.bytes);
      return add(result_.codes, dense_.rows * matrix.row_bytes, matrix.codes);
    }
    const size_t bits = format_.format == StoredFormat::kFp8   ? 8
                        : format_.format == StoredFormat::kFp4 ? 4
                                                               : static_cast<size_t>(format_.bits);
    matrix.row_bytes = is_by_column() ? 0 : dense_.columns * bits / 8;
    add(result_.codes, dense_.rows * dense_.columns * bits / 8, matrix.codes);
    const size_t scale_rows = (dense_.rows + row_group() - 1) / row_group();
    // The last group may be shorter.
    const size_t scale_columns = format_.group == 0
                                     ? 1
                                     : (dense_.columns + static_cast<size_t>(format_.group) - 1) /
                                           static_cast<size_t>(format_.group);
    const size_t scale_bytes = scale_rows * scale_columns * dtype_bytes(format_.scale_type);
    add(result_.scales, scale_bytes, matrix.scales);
    if (format_.format == StoredFormat::kAffine) add(result_.biases, scale_bytes, matrix.biases);
    if (format_.has_zeros) add(result_.zeros, dense_.rows * groups() * bits / 8, matrix.zeros);
    if (format_.has_act_order) {
      add(result_.groups, dense_.columns * 4, matrix.groups);
      for (size_t column = 0; column < dense_.columns; ++column) {
        const auto group =
            static_cast<uint32_t>(column * 7 % dense_.columns / static_cast<size_t>(format_.group));
        put_bits(result_.groups, column * 32, 32, group);
      }
    }
  }

  void set_scales() {
    Extent all;
    for (const double value : dense_.values) all.add(value);
    if (format_.scale_type == DType::kF8E4M3) {
      // As stored by compressed-tensors: the reciprocal.
      result_.matrix.factor = 1 / static_cast<float>(6 * 448 / all.magnitude());
    }
    const size_t groups = result_.scales.size() / dtype_bytes(format_.scale_type) /
                          ((dense_.rows + row_group() - 1) / row_group());
    for (size_t begin = 0; begin < dense_.rows; begin += row_group()) {
      std::vector<Extent> extents(groups);
      for (size_t row = begin; row < std::min(begin + row_group(), dense_.rows); ++row) {
        for (size_t i = 0; i < dense_.columns; ++i) extents[group_of(i)].add(dense_.at(row, i));
      }
      for (size_t group = 0; group < groups; ++group) {
        const size_t row = begin / row_group();
        const size_t index = is_by_column() ? group * dense_.rows + row : row * groups + group;
        set_scale(index, row, group, extents[group]);
      }
    }
  }
  void set_scale(size_t index, size_t row, size_t group, const Extent& extent) {
    const DType type = format_.scale_type;
    const int largest = (1 << format_.bits) - 1;
    double scale = 0;
    if (format_.format == StoredFormat::kAffine) {
      scale = (extent.high - extent.low) / largest;
      put_number(result_.biases, index, type, extent.low);
    } else if (format_.format == StoredFormat::kFp8) {
      scale = extent.magnitude() / 448;
    } else if (format_.format == StoredFormat::kFp4) {
      scale = extent.magnitude() / 6 / static_cast<double>(result_.matrix.factor);
    } else if (!format_.has_zeros) {
      scale = extent.magnitude() / (largest / 2);  // NOLINT(bugprone-integer-division): 7 of 15
    } else {
      const double low = std::min(extent.low, 0.0);
      scale = (std::max(extent.high, 0.0) - low) / largest;
      const int zero = std::clamp(static_cast<int>(std::lround(-low / scale)), format_.zero_bias,
                                  largest + format_.zero_bias);
      put_zero(row, group, static_cast<uint32_t>(zero - format_.zero_bias));
    }
    put_number(result_.scales, index, type, scale);
  }
  void put_zero(size_t row, size_t group, uint32_t zero) {
    const auto bits = static_cast<size_t>(format_.bits), per_word = 32 / bits;
    const size_t words = dense_.rows / per_word;
    size_t bit = (group * words + row / per_word) * 32 + row % per_word * bits;
    if (format_.format == StoredFormat::kPackedInt) {
      bit = (row / per_word * groups() + group) * 32 + row % per_word * bits;
    } else if (format_.format == StoredFormat::kAwq) {
      bit = (group * words + row / 8) * 32 + awq_nibble(row) * 4;
    }
    put_bits(result_.zeros, bit, format_.bits, zero);
  }
  static size_t awq_nibble(size_t row) {
    constexpr size_t kNibbles[] = {0, 4, 1, 5, 2, 6, 3, 7};
    return kNibbles[row % 8];
  }

  void set_codes() {
    const std::vector<double> levels = code_levels(format_);
    for (size_t row = 0; row < dense_.rows; ++row) {
      for (size_t column = 0; column < dense_.columns; ++column) {
        const double first = value_of(row, column, 0), second = value_of(row, column, 1);
        const double scale = (second - first) / (levels[1] - levels[0]);
        const double wanted = dense_.at(row, column) - first;
        uint32_t nearest = 0;
        double distance = std::numeric_limits<double>::infinity();
        for (uint32_t code = 0; code < levels.size(); ++code) {
          const double miss = std::abs((levels[code] - levels[0]) * scale - wanted);
          if (miss < distance) nearest = code;
          distance = std::min(distance, std::isnan(miss) ? distance : miss);
        }
        put_code(row, column, nearest);
      }
    }
  }
  double value_of(size_t row, size_t column, uint32_t code) {
    put_code(row, column, code);
    return defined_weight(result_.matrix, static_cast<int>(row), static_cast<int>(column));
  }
  void put_code(size_t row, size_t column, uint32_t code) {
    const auto bits = static_cast<size_t>(format_.bits);
    size_t bit = 0;
    if (format_.format == StoredFormat::kGguf) {
      const auto block_columns = static_cast<size_t>(gguf_shape(format_.gguf_type).columns);
      const CodePlace place = code_place(format_.gguf_type, column % block_columns);
      const size_t begin = block_begin(row, column) * 8;
      put_bits(result_.codes, begin + place.low_bit, place.low_count, code);
      return put_bits(result_.codes, begin + place.high_bit, place.high_count,
                      code >> place.low_count);
    }
    if (format_.format == StoredFormat::kGptq) {
      const size_t per_word = 32 / bits;
      bit = (column / per_word * dense_.rows + row) * 32 + column % per_word * bits;
    } else if (format_.format == StoredFormat::kAwq) {
      bit = (column * (dense_.rows / 8) + row / 8) * 32 + awq_nibble(row) * 4;
    } else {
      const size_t width = result_.matrix.row_bytes * 8 / dense_.columns;
      const auto count = static_cast<int>(width);
      return put_bits(result_.codes, (row * dense_.columns + column) * width, count, code);
    }
    put_bits(result_.codes, bit, format_.bits, code);
  }
  // In the bytes of the codes.
  size_t block_begin(size_t row, size_t column) const {
    const GgufShape& shape = gguf_shape(format_.gguf_type);
    return row * result_.matrix.row_bytes +
           column / static_cast<size_t>(shape.columns) * static_cast<size_t>(shape.bytes);
  }

  void put_half(size_t byte, double value) { put_bits(result_.codes, byte * 8, 16, f16_of(value)); }
  Extent extent_of(size_t row, size_t column, size_t count) const {
    Extent extent;
    for (size_t i = 0; i < count; ++i) extent.add(dense_.at(row, column + i));
    return extent;
  }
  void set_block_scales(size_t row, size_t column) {
    const uint32_t type = format_.gguf_type;
    const size_t begin = block_begin(row, column);
    if (type == 10 || type == 12 || type == 13) return set_pairs(row, column, begin);
    if (type == 11 || type == 14 || type == 23) return set_signed(row, column, begin);
    const Extent extent = extent_of(row, column, 32);
    const auto codes = static_cast<double>(code_levels(format_).size());
    if (type == 39) {
      put_bits(result_.codes, begin * 8, 8,
               static_cast<uint32_t>(e8m0_above(extent.magnitude() / 6)));
    } else if (type == 3 || type == 7) {
      put_half(begin, (extent.high - extent.low) / (codes - 1));
      put_half(begin + 2, extent.low);
    } else if (type == 8) {
      put_half(begin, extent.magnitude() / 127);
    } else {
      // As in ggml, the element furthest from zero gets the lowest code: scales are signed.
      put_half(begin, extent.furthest() / (type == 20 ? -127 : -codes / 2));
    }
  }
  // Scales and minimums of Q2_K, Q4_K and Q5_K.
  void set_pairs(size_t row, size_t column, size_t begin) {
    const bool is_q2 = format_.gguf_type == 10;
    const size_t size = is_q2 ? 16 : 32;
    const double largest = is_q2 ? 15 : 63;
    std::vector<double> scales, minimums;
    for (size_t i = 0; i < 256; i += size) {
      const Extent extent = extent_of(row, column + i, size);
      minimums.push_back(std::max(-extent.low, 0.0));
      scales.push_back((extent.high + minimums.back()) /
                       static_cast<double>(code_levels(format_).size() - 1));
    }
    const double d = *std::max_element(scales.begin(), scales.end()) / largest;
    const double m = *std::max_element(minimums.begin(), minimums.end()) / largest;
    put_half(begin + (is_q2 ? 80 : 0), d);
    put_half(begin + (is_q2 ? 82 : 2), m);
    for (size_t part = 0; part < scales.size(); ++part) {
      const auto s = static_cast<uint32_t>(std::lround(scales[part] / d));
      const auto t = m == 0 ? 0 : static_cast<uint32_t>(std::lround(minimums[part] / m));
      if (is_q2) {
        put_bits(result_.codes, (begin + part) * 8, 8, s | t << 4);
      } else if (part < 4) {
        put_bits(result_.codes, (begin + 4 + part) * 8, 6, s);
        put_bits(result_.codes, (begin + 8 + part) * 8, 6, t);
      } else {
        put_bits(result_.codes, (begin + 8 + part) * 8, 8, (s & 15) | (t & 15) << 4);
        put_bits(result_.codes, (begin + part) * 8 + 6, 2, s >> 4);
        put_bits(result_.codes, (begin + 4 + part) * 8 + 6, 2, t >> 4);
      }
    }
  }
  // Signed scales of Q3_K, Q6_K and IQ4_XS.
  void set_signed(size_t row, size_t column, size_t begin) {
    const uint32_t type = format_.gguf_type;
    const size_t size = type == 23 ? 32 : 16;
    const double lowest = type == 11 ? -4 : type == 14 ? -32 : -127;
    std::vector<double> scales;
    double largest = 0;
    for (size_t i = 0; i < 256; i += size) {
      scales.push_back(extent_of(row, column + i, size).furthest() / lowest);
      largest = std::max(largest, std::abs(scales.back()));
    }
    const double d = largest / (type == 14 ? 127 : 31);
    put_half(begin + (type == 11 ? 108 : type == 14 ? 208 : 0), d);
    for (size_t part = 0; part < scales.size(); ++part) {
      const auto s = static_cast<int>(std::lround(scales[part] / d));
      const auto u = static_cast<uint32_t>(s + 32);
      if (type == 14) {
        put_bits(result_.codes, (begin + 192 + part) * 8, 8, static_cast<uint32_t>(s) & 255);
      } else if (type == 11) {
        put_bits(result_.codes, (begin + 96 + part % 8) * 8 + part / 8 * 4, 4, u & 15);
        put_bits(result_.codes, (begin + 104 + part % 4) * 8 + part / 4 * 2, 2, u >> 4);
      } else {
        put_bits(result_.codes, (begin + 4) * 8 + part * 4, 4, u & 15);
        put_bits(result_.codes, (begin + 2) * 8 + part * 2, 2, u >> 4);
      }
    }
  }

  const FormatCase& format_;
  const DenseMatrix& dense_;
  EncodedMatrix result_;
};

inline EncodedMatrix encode_matrix(const FormatCase& format, const DenseMatrix& dense) {
  return MatrixEncoder(format, dense).encode();
}

}  // namespace lockstep::testing
