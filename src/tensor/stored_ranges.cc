#include "tensor/stored_ranges.h"

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

struct Rows {
  size_t begin = 0;
  size_t end = 0;
};

// The stored rows from the first to the last one read.
Rows stored_rows(const StoredMatrix& matrix, const MatrixPart& part) {
  const auto begin = static_cast<size_t>(part.row_begin), count = static_cast<size_t>(part.rows);
  if (matrix.row_map.empty()) return {begin, begin + count};
  const auto map = matrix.row_map.subspan(begin, count);
  const auto [least, most] = std::minmax_element(map.begin(), map.end());
  return {static_cast<size_t>(*least), static_cast<size_t>(*most) + 1};
}

std::span<const std::byte> between(std::span<const std::byte> bytes, size_t begin, size_t end) {
  end = std::min(end, bytes.size());
  begin = std::min(begin, end);
  return bytes.subspan(begin, end - begin);
}

// Scales and biases, (row groups, groups of columns).
std::span<const std::byte> scales_of(const StoredMatrix& matrix, std::span<const std::byte> scales,
                                     const Rows& rows) {
  const size_t row_bytes = scale_groups(matrix) * dtype_bytes(matrix.scale_type);
  const size_t first = row_group_of(matrix, static_cast<int>(rows.begin));
  const size_t last = row_group_of(matrix, static_cast<int>(rows.end) - 1);
  return between(scales, first * row_bytes, (last + 1) * row_bytes);
}

// Codes (columns / per_word, rows_of_words), in words of 4 bytes.
std::span<const std::byte> columns_of(const StoredMatrix& matrix, const MatrixPart& part,
                                      size_t per_word, size_t words) {
  const auto begin = static_cast<size_t>(part.column_begin);
  const auto end = begin + static_cast<size_t>(part.columns);
  const size_t line = words * 4;
  return between(matrix.codes, begin / per_word * line, (end + per_word - 1) / per_word * line);
}

}  // namespace

std::vector<std::span<const std::byte>> stored_ranges(const StoredMatrix& matrix,
                                                      const MatrixPart& part) {
  if (part.rows == 0 || part.columns == 0) return {};
  const auto all_rows = static_cast<size_t>(matrix.rows);
  std::vector<std::span<const std::byte>> ranges;
  if (matrix.format == StoredFormat::kGptq) {
    ranges = {columns_of(matrix, part, static_cast<size_t>(32 / matrix.bits), all_rows),
              matrix.scales, matrix.zeros, matrix.groups};
  } else if (matrix.format == StoredFormat::kAwq) {
    ranges = {columns_of(matrix, part, 1, (all_rows + 7) / 8), matrix.scales, matrix.zeros};
  } else {
    const Rows rows = stored_rows(matrix, part);
    // The last row may be shorter than the row stride.
    ranges = {between(matrix.codes, rows.begin * matrix.row_bytes, rows.end * matrix.row_bytes),
              matrix.zeros};
    const bool has_scales =
        matrix.format != StoredFormat::kPlain && matrix.format != StoredFormat::kGguf;
    if (has_scales) {
      ranges.push_back(scales_of(matrix, matrix.scales, rows));
      ranges.push_back(scales_of(matrix, matrix.biases, rows));
    }
  }
  std::erase_if(ranges, [](const auto& range) { return range.empty(); });
  return ranges;
}

}  // namespace lockstep
