#include "device/packing/pack_plain.h"

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "kernels/packed_matrix.h"

namespace lockstep {
namespace {

using Elements8 = uint16_t __attribute__((vector_size(16)));
using Elements4 = uint32_t __attribute__((vector_size(16)));

// Eight columns of eight rows: interleaves pairs of rows, then pairs of these, then fours.
void transpose_8x8(const std::byte* const* rows, size_t offset, std::byte* out) {
  Elements8 from[8], to[8];
  for (int i = 0; i < 8; ++i) std::memcpy(&from[i], rows[i] + offset, sizeof from[i]);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      to[2 * i] = __builtin_shufflevector(from[i], from[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      to[2 * i + 1] = __builtin_shufflevector(from[i], from[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; ++i) from[i] = to[i];
  }
  for (size_t i = 0; i < 8; ++i) std::memcpy(out + i * kLanes * 2, &from[i], sizeof from[i]);
}

void transpose_4x4(const std::byte* const* rows, size_t offset, std::byte* out) {
  Elements4 from[4], to[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&from[i], rows[i] + offset, sizeof from[i]);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 2; ++i) {
      to[2 * i] = __builtin_shufflevector(from[i], from[i + 2], 0, 4, 1, 5);
      to[2 * i + 1] = __builtin_shufflevector(from[i], from[i + 2], 2, 6, 3, 7);
    }
    for (int i = 0; i < 4; ++i) from[i] = to[i];
  }
  for (size_t i = 0; i < 4; ++i) std::memcpy(out + i * kLanes * 4, &from[i], sizeof from[i]);
}

// One cache line of some rows at a time: rows are often a power of two apart, so that the lines of
// sixteen rows would evict each other from the cache.
void transpose_lines_16(const std::byte* const* rows, size_t columns, std::byte* out) {
  constexpr size_t kColumns = 32;
  for (size_t column = 0; column < columns; column += kColumns) {
    for (size_t row = 0; row < kLanes; row += 8) {
      for (size_t part = column; part < column + kColumns; part += 8) {
        transpose_8x8(rows + row, part * 2, out + (part * kLanes + row) * 2);
      }
    }
  }
}

void transpose_lines_32(const std::byte* const* rows, size_t columns, std::byte* out) {
  constexpr size_t kColumns = 16;
  for (size_t column = 0; column < columns; column += kColumns) {
    for (size_t row = 0; row < kLanes; row += 4) {
      for (size_t part = column; part < column + kColumns; part += 4) {
        transpose_4x4(rows + row, part * 4, out + (part * kLanes + row) * 4);
      }
    }
  }
}

}  // namespace

void transpose_rows(std::span<const std::byte* const> rows, size_t columns, size_t element_bytes,
                    std::byte* out) {
  LOCKSTEP_CHECK(rows.size() <= kLanes && (element_bytes == 2 || element_bytes == 4));
  size_t begin = 0;
  if (rows.size() == kLanes) {
    begin = columns / 32 * 32;
    if (element_bytes == 2) transpose_lines_16(rows.data(), begin, out);
    if (element_bytes == 4) transpose_lines_32(rows.data(), begin, out);
  } else {
    std::memset(out, 0, columns * kLanes * element_bytes);
  }
  for (size_t column = begin; column < columns; ++column) {
    for (size_t row = 0; row < rows.size(); ++row) {
      std::memcpy(out + (column * kLanes + row) * element_bytes, rows[row] + column * element_bytes,
                  element_bytes);
    }
  }
}

}  // namespace lockstep
