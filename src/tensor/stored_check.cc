#include "tensor/stored_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "tensor/ggml_blocks.h"
#include "tensor/stored_codes.h"

namespace lockstep {
namespace {

constexpr std::byte kE4M3Nan{0x7f};  // sign bit ignored
constexpr std::byte kE8M0Nan{0xff};

size_t divide_up(size_t count, size_t by) {
  return (count + by - 1) / by;
}

Error corrupt(std::string message) {
  return {ErrorCode::kCorrupt, std::move(message)};
}
Error unsupported(std::string message) {
  return {ErrorCode::kUnsupported, std::move(message)};
}

// `part` holds count_a * count_b elements of `element_bytes`, or more.
Status check_part(std::string_view name, std::span<const std::byte> part, size_t count_a,
                  size_t count_b, size_t element_bytes) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count_a, count_b, &bytes) ||
      __builtin_mul_overflow(bytes, element_bytes, &bytes) || bytes > part.size()) {
    return corrupt(fmt::format("the {} of a matrix have {} bytes, too few for {} x {} of {}", name,
                               part.size(), count_a, count_b, element_bytes));
  }
  return Ok{};
}

// How many rows the parts must have, given the rows in use.
Result<size_t> stored_row_count(const StoredMatrix& matrix) {
  if (matrix.row_map.empty()) return static_cast<size_t>(matrix.rows);
  if (matrix.row_map.size() != static_cast<size_t>(matrix.rows)) {
    return corrupt(fmt::format("a matrix of {} rows has a map of {} rows", matrix.rows,
                               matrix.row_map.size()));
  }
  const auto [least, most] = std::minmax_element(matrix.row_map.begin(), matrix.row_map.end());
  if (*least < 0) return corrupt(fmt::format("row {} of a matrix does not exist", *least));
  const size_t count = static_cast<size_t>(*most) + 1;
  const bool is_by_column =
      matrix.format == StoredFormat::kGptq || matrix.format == StoredFormat::kAwq;
  if (is_by_column && count > static_cast<size_t>(matrix.rows)) {
    return corrupt(fmt::format("row {} of a matrix of {} rows does not exist", *most, matrix.rows));
  }
  return count;
}

Status check_column_map(const StoredMatrix& matrix) {
  if (matrix.column_map.empty()) return Ok{};
  const bool is_plain = plain_element_type(matrix).has_value();
  if (!is_plain && matrix.format != StoredFormat::kGguf) {
    return unsupported("columns in another order are supported for GGUF's formats only");
  }
  const auto groups = static_cast<int64_t>(matrix.column_map.size());
  const bool splits_run = !is_plain && matrix.column_group % kRunColumns != 0;
  if (matrix.column_group < 1 || groups * matrix.column_group != matrix.columns || splits_run) {
    return corrupt(fmt::format("{} groups of {} columns are not possible in {} columns", groups,
                               matrix.column_group, matrix.columns));
  }
  for (const int32_t group : matrix.column_map) {
    if (group >= 0 && group < groups) continue;
    return corrupt(fmt::format("group {} of {} groups of columns does not exist", group, groups));
  }
  return Ok{};
}

Status check_rows(const StoredMatrix& matrix, size_t rows, size_t used_row_bytes) {
  if (rows == 0) return Ok{};
  if (rows > 1 && matrix.row_bytes < used_row_bytes) {
    return corrupt(fmt::format("a row of {} columns takes {} bytes, but rows lie {} bytes apart",
                               matrix.columns, used_row_bytes, matrix.row_bytes));
  }
  size_t bytes = 0;
  if (__builtin_mul_overflow(rows - 1, matrix.row_bytes, &bytes) ||
      __builtin_add_overflow(bytes, used_row_bytes, &bytes) || bytes > matrix.codes.size()) {
    return corrupt(fmt::format("a matrix of {} rows and {} columns has only {} bytes", rows,
                               matrix.columns, matrix.codes.size()));
  }
  return Ok{};
}

// Codes row after row, and a grid of scales.
Status check_row_format(const StoredMatrix& matrix, size_t rows, size_t bits) {
  const auto columns = static_cast<size_t>(matrix.columns);
  TRY(check_rows(matrix, rows, divide_up(columns * bits, 8)));
  const size_t groups = scale_groups(matrix);
  const size_t row_groups =
      matrix.row_group == 0 ? 1 : divide_up(rows, static_cast<size_t>(matrix.row_group));
  const size_t scale_bytes = dtype_bytes(matrix.scale_type);
  TRY(check_part("scales", matrix.scales, row_groups, groups, scale_bytes));
  if (matrix.format == StoredFormat::kAffine) {
    TRY(check_part("biases", matrix.biases, row_groups, groups, scale_bytes));
  }
  if (matrix.format == StoredFormat::kPackedInt && !matrix.zeros.empty()) {
    TRY(check_part("zero points", matrix.zeros, divide_up(rows * bits, 32), groups, 4));
  }
  return Ok{};
}

Status check_act_order(const StoredMatrix& matrix) {
  if (matrix.groups.empty()) return Ok{};
  TRY(check_part("groups", matrix.groups, static_cast<size_t>(matrix.columns), 1, 4));
  const size_t groups = scale_groups(matrix);
  for (size_t column = 0; column < static_cast<size_t>(matrix.columns); ++column) {
    int32_t group = 0;
    std::memcpy(&group, matrix.groups.data() + column * 4, 4);
    if (group < 0 || static_cast<size_t>(group) >= groups) {
      return corrupt(
          fmt::format("column {} is of group {}, but there are {}", column, group, groups));
    }
  }
  return Ok{};
}

Status check_gptq(const StoredMatrix& matrix) {
  if (matrix.bits != 4 && matrix.bits != 8) {
    return unsupported(fmt::format("GPTQ of {} bits is not supported, only 4 and 8", matrix.bits));
  }
  if (matrix.zero_bias != 0 && matrix.zero_bias != 1) {
    return corrupt(fmt::format("GPTQ zero points cannot be off by {}", matrix.zero_bias));
  }
  const auto per_word = static_cast<size_t>(32 / matrix.bits);
  const auto rows = static_cast<size_t>(matrix.rows), columns = static_cast<size_t>(matrix.columns);
  TRY(check_part("codes", matrix.codes, divide_up(columns, per_word), rows, 4));
  const size_t groups = scale_groups(matrix);
  TRY(check_part("scales", matrix.scales, groups, rows, dtype_bytes(matrix.scale_type)));
  if (!matrix.zeros.empty()) {
    TRY(check_part("zero points", matrix.zeros, groups, divide_up(rows, per_word), 4));
  }
  return check_act_order(matrix);
}

Status check_awq(const StoredMatrix& matrix) {
  if (matrix.bits != 4) {
    return unsupported(fmt::format("AWQ of {} bits is not supported, only 4", matrix.bits));
  }
  const auto rows = static_cast<size_t>(matrix.rows), columns = static_cast<size_t>(matrix.columns);
  TRY(check_part("codes", matrix.codes, columns, divide_up(rows, 8), 4));
  const size_t groups = scale_groups(matrix);
  TRY(check_part("scales", matrix.scales, groups, rows, dtype_bytes(matrix.scale_type)));
  if (!matrix.zeros.empty()) {
    TRY(check_part("zero points", matrix.zeros, groups, divide_up(rows, 8), 4));
  }
  return Ok{};
}

Status check_fp4(const StoredMatrix& matrix, size_t rows) {
  const bool is_mx = matrix.scale_type == DType::kF8E8M0;
  const bool is_nv = matrix.scale_type == DType::kF8E4M3 && matrix.group == 16;
  if (!is_mx && !is_nv) {
    return unsupported(fmt::format("4-bit floats with scales of {} by {} columns are not supported",
                                   dtype_name(matrix.scale_type), matrix.group));
  }
  return check_row_format(matrix, rows, 4);
}

Status check_bits(const StoredMatrix& matrix, std::initializer_list<int> known) {
  if (std::find(known.begin(), known.end(), matrix.bits) != known.end()) return Ok{};
  return unsupported(fmt::format("quantised weights of {} bits are not supported", matrix.bits));
}

Status check_scale_type(const StoredMatrix& matrix) {
  const bool is_fp8_scale =
      matrix.format == StoredFormat::kFp8 && matrix.scale_type == DType::kF8E8M0;
  if (is_float(matrix.scale_type) || is_fp8_scale) return Ok{};
  return unsupported(
      fmt::format("scales of type {} are not supported here", dtype_name(matrix.scale_type)));
}

Status check_gguf(const StoredMatrix& matrix, size_t rows) {
  const GgmlBlock* block = find_ggml_block(matrix.gguf_type);
  if (block == nullptr) {
    return unsupported(fmt::format("GGUF tensors of type {} are not supported", matrix.gguf_type));
  }
  const size_t blocks =
      divide_up(static_cast<size_t>(matrix.columns), static_cast<size_t>(block->columns));
  return check_rows(matrix, rows, blocks * static_cast<size_t>(block->bytes));
}

// No early exit, so that compilers vectorise it.
bool has_e4m3_nan(std::span<const std::byte> codes) {
  unsigned char found = 0;
  for (const std::byte code : codes) {
    found |= static_cast<unsigned char>((code & kE4M3Nan) == kE4M3Nan);
  }
  return found != 0;
}

bool has_e8m0_nan(std::span<const std::byte> codes) {
  return std::find(codes.begin(), codes.end(), kE8M0Nan) != codes.end();
}

Status check_by_format(const StoredMatrix& matrix, size_t rows) {
  const auto columns = static_cast<size_t>(matrix.columns);
  switch (matrix.format) {
    case StoredFormat::kPlain:
      TRY(check_scale_type(matrix));
      return check_rows(matrix, rows, columns * dtype_bytes(matrix.scale_type));
    case StoredFormat::kGguf:
      return check_gguf(matrix, rows);
    case StoredFormat::kFp4:
      return check_fp4(matrix, rows);
    case StoredFormat::kAffine:
      TRY(check_bits(matrix, {2, 3, 4, 5, 6, 8}));
      TRY(check_scale_type(matrix));
      return check_row_format(matrix, rows, static_cast<size_t>(matrix.bits));
    case StoredFormat::kFp8:
      TRY(check_scale_type(matrix));
      return check_row_format(matrix, rows, 8);
    case StoredFormat::kPackedInt:
      TRY(check_bits(matrix, {4, 8}));
      TRY(check_scale_type(matrix));
      return check_row_format(matrix, rows, static_cast<size_t>(matrix.bits));
    case StoredFormat::kGptq:
      TRY(check_scale_type(matrix));
      return check_gptq(matrix);
    case StoredFormat::kAwq:
      TRY(check_scale_type(matrix));
      return check_awq(matrix);
  }
  return corrupt("a matrix of an unknown format");
}

}  // namespace

Status check_stored_matrix(const StoredMatrix& matrix) {
  if (matrix.rows < 0 || matrix.columns < 0) {
    return corrupt(
        fmt::format("a matrix cannot have {} rows and {} columns", matrix.rows, matrix.columns));
  }
  if (matrix.group < 0 || matrix.row_group < 0) {
    return corrupt(fmt::format("a scale cannot be for {} rows and {} columns", matrix.row_group,
                               matrix.group));
  }
  if (matrix.row_group != 1 && matrix.format != StoredFormat::kFp8) {
    return unsupported("scales of several rows are supported for 8-bit floats only");
  }
  if (!matrix.groups.empty() && matrix.format != StoredFormat::kGptq) {
    return corrupt("only GPTQ has the groups of columns in a list");
  }
  TRY(check_column_map(matrix));
  const size_t rows = TRY(stored_row_count(matrix));
  return check_by_format(matrix, rows);
}

bool are_small_floats_numbers(const StoredMatrix& matrix, const MatrixPart& part) {
  if (part.rows == 0 || part.columns == 0) return true;
  const bool has_e4m3_codes = matrix.format == StoredFormat::kFp8;
  const bool has_small_scales = (has_e4m3_codes || matrix.format == StoredFormat::kFp4) &&
                                dtype_bytes(matrix.scale_type) == 1;
  const size_t first_group = scale_group_of(matrix, part.column_begin);
  const size_t groups = scale_group_of(matrix, part.column_begin + part.columns - 1) + 1;
  bool has_nan = false;
  for (int i = 0; i < part.rows; ++i) {
    const int row = matrix.stored_row(part.row_begin + i);
    if (has_e4m3_codes) {
      const size_t at = static_cast<size_t>(row) * matrix.row_bytes;
      has_nan |= has_e4m3_nan(matrix.codes.subspan(at + static_cast<size_t>(part.column_begin),
                                                   static_cast<size_t>(part.columns)));
    }
    if (has_small_scales) {
      const auto scales = matrix.scales.subspan(
          row_group_of(matrix, row) * scale_groups(matrix) + first_group, groups - first_group);
      has_nan |= matrix.scale_type == DType::kF8E4M3 ? has_e4m3_nan(scales) : has_e8m0_nan(scales);
    }
  }
  return !has_nan;
}

uint64_t stored_bytes(const StoredMatrix& matrix) {
  const uint64_t parts = matrix.codes.size() + matrix.scales.size() + matrix.biases.size() +
                         matrix.zeros.size() + matrix.groups.size();
  if (matrix.row_map.empty() || matrix.row_bytes == 0) return parts;
  const size_t rows = std::max<size_t>(matrix.codes.size() / matrix.row_bytes, 1);
  return static_cast<uint64_t>(static_cast<double>(parts) * matrix.rows /
                               static_cast<double>(rows));
}

std::optional<DType> plain_element_type(const StoredMatrix& matrix) {
  if (matrix.format == StoredFormat::kPlain) return matrix.scale_type;
  if (matrix.format != StoredFormat::kGguf) return std::nullopt;
  switch (static_cast<GgmlType>(matrix.gguf_type)) {
    case GgmlType::kF32:
      return DType::kF32;
    case GgmlType::kF16:
      return DType::kF16;
    case GgmlType::kBF16:
      return DType::kBF16;
    default:
      return std::nullopt;
  }
}

}  // namespace lockstep
