#include "tensor/stored_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/float8.h"
#include "tensor/half.h"
#include "tensor/stored_check.h"
#include "tensor/stored_codes.h"

namespace lockstep {
namespace {

// weight = scale * (value of the code - zero) + bias
struct StoredScale {
  double scale = 0;
  int zero = 0;
  float bias = 0;
};

constexpr std::array<float, 256> kE4M3Values = [] {
  std::array<float, 256> values{};
  for (size_t i = 0; i < values.size(); ++i) values[i] = float_of_e4m3(static_cast<uint8_t>(i));
  return values;
}();

double load_scale(const StoredMatrix& matrix, size_t index) {
  const auto byte = [&] { return static_cast<uint8_t>(matrix.scales[index]); };
  if (matrix.scale_type == DType::kF8E8M0) return double_of_e8m0(byte());
  if (matrix.scale_type == DType::kF8E4M3) return static_cast<double>(float_of_e4m3(byte()));
  return static_cast<double>(load_element(matrix.scales.data(), matrix.scale_type, index));
}

uint32_t load_word(std::span<const std::byte> words, size_t index) {
  uint32_t word;
  std::memcpy(&word, words.data() + index * 4, 4);
  return word;
}

StoredScale packed_int_scale(const StoredMatrix& matrix, int stored_row, int column) {
  const size_t groups = scale_groups(matrix), group = scale_group_of(matrix, column);
  StoredScale scale{load_scale(matrix, static_cast<size_t>(stored_row) * groups + group)};
  if (!matrix.zeros.empty()) scale.zero = stored_zero(matrix, stored_row, group);
  return scale;
}

// GPTQ and AWQ: scales along the columns.
StoredScale column_major_scale(const StoredMatrix& matrix, int stored_row, int column) {
  const size_t group = matrix.groups.empty()
                           ? scale_group_of(matrix, column)
                           : load_word(matrix.groups, static_cast<size_t>(column));
  StoredScale scale{load_scale(
      matrix, group * static_cast<size_t>(matrix.rows) + static_cast<size_t>(stored_row))};
  if (!matrix.zeros.empty()) scale.zero = stored_zero(matrix, stored_row, group);
  return scale;
}

StoredScale grid_scale(const StoredMatrix& matrix, int stored_row, int column) {
  const size_t index =
      row_group_of(matrix, stored_row) * scale_groups(matrix) + scale_group_of(matrix, column);
  StoredScale scale{load_scale(matrix, index)};
  if (matrix.format == StoredFormat::kFp4) scale.scale *= 0.5;  // kE2M1Table holds twice the values
  if (matrix.format == StoredFormat::kAffine) {
    scale.bias = load_element(matrix.biases.data(), matrix.scale_type, index);
  }
  return scale;
}

StoredScale ggml_scale(const StoredMatrix& matrix, int stored_row, int column) {
  const GgmlBlock& format = *find_ggml_block(matrix.gguf_type);
  const std::byte* block =
      matrix.codes.data() + static_cast<size_t>(stored_row) * matrix.row_bytes +
      static_cast<size_t>(column / format.columns) * static_cast<size_t>(format.bytes);
  const int index = format.scale_columns == 0 ? 0 : column % format.columns / format.scale_columns;
  const auto half = [block](int at) { return load_element(block + at, DType::kF16, 0); };
  const auto times = [](float d, int s) { return static_cast<double>(d) * s; };
  switch (format.type) {
    case GgmlType::kQ4_1:
    case GgmlType::kQ5_1:
      return {static_cast<double>(half(0)), 0, half(2)};
    case GgmlType::kQ2_K: {
      const auto packed = static_cast<uint8_t>(block[index]);
      return {times(half(80), packed & 15), 0, -(half(82) * static_cast<float>(packed >> 4))};
    }
    case GgmlType::kQ3_K:
      return {times(half(108), q3_scale(block + 96, index))};
    case GgmlType::kQ4_K:
    case GgmlType::kQ5_K: {
      const SixBitPair pair = six_bit_pair(block + 4, index);
      return {times(half(0), pair.scale), 0, -(half(2) * static_cast<float>(pair.minimum))};
    }
    case GgmlType::kQ6_K:
      return {times(half(208), static_cast<int8_t>(block[192 + index]))};
    case GgmlType::kIQ4_XS:
      return {times(half(0), iq4_xs_scale(block, index))};
    case GgmlType::kMXFP4:
      return {double_of_e8m0(static_cast<uint8_t>(block[0])) * 0.5};
    default:
      return {static_cast<double>(half(0))};
  }
}

StoredScale scale_at(const StoredMatrix& matrix, int stored_row, int column) {
  switch (matrix.format) {
    case StoredFormat::kPackedInt:
      return packed_int_scale(matrix, stored_row, column);
    case StoredFormat::kGptq:
    case StoredFormat::kAwq:
      return column_major_scale(matrix, stored_row, column);
    case StoredFormat::kGguf:
      return ggml_scale(matrix, stored_row, column);
    default:
      return grid_scale(matrix, stored_row, column);
  }
}

// One past the last column in the same run of codes and with the same scale as `column`.
int run_end(const StoredMatrix& matrix, int column, int end) {
  int group = matrix.group;
  if (matrix.format == StoredFormat::kGguf)
    group = find_ggml_block(matrix.gguf_type)->scale_columns;
  if (!matrix.groups.empty()) group = 1;  // act-order
  int64_t last = (int64_t{column} / kRunColumns + 1) * kRunColumns;
  if (group > 0) last = std::min(last, (int64_t{column} / group + 1) * group);
  return static_cast<int>(std::min<int64_t>(last, end));
}

// A product of a float scale (24 bits) and a code (at most 9) is exact in double, and with a bias
// both factors are floats: either way there is one rounding.
float weight_of(const StoredScale& scale, double value, float factor) {
  if (scale.bias == 0) return static_cast<float>(scale.scale * (value - scale.zero) * factor);
  const float exact =
      std::fma(static_cast<float>(scale.scale), static_cast<float>(value), scale.bias);
  return factor == 1 ? exact : exact * factor;
}

void read_plain(const StoredMatrix& matrix, DType type, int stored_row, int column_begin,
                std::span<float> out) {
  const std::byte* from = matrix.codes.data() + static_cast<size_t>(stored_row) * matrix.row_bytes +
                          static_cast<size_t>(column_begin) * dtype_bytes(type);
  for (size_t i = 0; i < out.size(); ++i) {
    const float value = load_element(from, type, i);
    out[i] = matrix.factor == 1 ? value : value * matrix.factor;
  }
}

// Columns that are stored side by side, from stored column `column_begin` on.
void dequantise_columns(const StoredMatrix& matrix, int stored_row, int column_begin,
                        std::span<float> out) {
  const std::optional<DType> plain = plain_element_type(matrix);
  if (plain) return read_plain(matrix, *plain, stored_row, column_begin, out);
  with_stored_codes(matrix, [&](const auto& reader, const CodeMeaning& meaning) {
    const int end = column_begin + static_cast<int>(out.size());
    float* to = out.data();
    for (int column = column_begin; column < end;) {
      const int stop = run_end(matrix, column, end), count = stop - column;
      uint8_t codes[kRunColumns];
      if (reader.is_whole_run(column, count)) {
        reader.read_run(stored_row, column, codes);
      } else {
        reader.read_part(stored_row, column, count, codes);
      }
      const StoredScale scale = scale_at(matrix, stored_row, column);
      for (int i = 0; i < count; ++i) {
        const int code = meaning.table != nullptr ? meaning.table[codes[i]] : codes[i];
        const double value = meaning.is_e4m3 ? static_cast<double>(kE4M3Values[codes[i]])
                                             : static_cast<double>(code - meaning.offset);
        *to++ = weight_of(scale, value, matrix.factor);
      }
      column = stop;
    }
  });
}

}  // namespace

int stored_zero(const StoredMatrix& matrix, int stored_row, size_t group) {
  const auto row = static_cast<size_t>(stored_row);
  if (matrix.format == StoredFormat::kAwq) {
    const size_t words = (static_cast<size_t>(matrix.rows) + 7) / 8;
    return static_cast<int>(
        load_word(matrix.zeros, group * words + row / 8) >> (4 * kAwqNibbles[row % 8]) & 15);
  }
  const auto per_word = static_cast<size_t>(32 / matrix.bits);
  const size_t shift = row % per_word * static_cast<size_t>(matrix.bits);
  const uint32_t mask = (1u << matrix.bits) - 1;
  if (matrix.format == StoredFormat::kPackedInt) {
    const size_t index = row / per_word * scale_groups(matrix) + group;
    return static_cast<int>(load_word(matrix.zeros, index) >> shift & mask);
  }
  const size_t words = (static_cast<size_t>(matrix.rows) + per_word - 1) / per_word;
  const size_t index = group * words + row / per_word;
  return static_cast<int>(load_word(matrix.zeros, index) >> shift & mask) + matrix.zero_bias;
}

void dequantise_row(const StoredMatrix& matrix, int row, int column_begin, std::span<float> out) {
  LOCKSTEP_CHECK(row >= 0 && row < matrix.rows && column_begin >= 0);
  LOCKSTEP_CHECK(out.size() <= static_cast<size_t>(matrix.columns - column_begin));
  for (size_t done = 0; done < out.size();) {
    const int column = column_begin + static_cast<int>(done);
    const auto count =
        std::min(static_cast<size_t>(matrix.adjacent_columns(column)), out.size() - done);
    dequantise_columns(matrix, matrix.stored_row(row), matrix.stored_column(column),
                       out.subspan(done, count));
    done += count;
  }
}

}  // namespace lockstep
