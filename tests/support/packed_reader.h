// Reads packed matrices element by element, in double, using only the definition in
// kernels/packed_matrix.h.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "device/packing/packing.h"
#include "support/defined_weights.h"

namespace lockstep::testing {

// The bits of each of a code's planes, the low plane first.
inline std::vector<int> planes_of(PackedCodes codes) {
  switch (codes) {
    case PackedCodes::kBits2:
      return {2};
    case PackedCodes::kBits3:
      return {2, 1};
    case PackedCodes::kBits5:
      return {4, 1};
    case PackedCodes::kBits6:
      return {4, 2};
    case PackedCodes::kBits8:
    case PackedCodes::kFp8:
      return {8};
    default:
      return {4};
  }
}

inline int packed_code(PackedCodes codes, const std::byte* block, int row, int column) {
  const int quad = column / 4, byte = row * 4 + column % 4;
  int code = 0, shift = 0;
  for (const int bits : planes_of(codes)) {
    // Vectors of 64 bytes hold 8 / bits quads each; with one bit it is all eight of them.
    const int per_vector = 8 / bits;
    const int at = quad / per_vector * 64 + byte;
    const int value = static_cast<int>(block[at]) >> (quad % per_vector * bits);
    code |= (value & ((1 << bits) - 1)) << shift;
    shift += bits;
    block += 8 / per_vector * 64;
  }
  return code;
}

struct PackedScale {
  double scale = 0;
  double bias = 0;
  int zero = 0;
};

// The scales of one row in the piece at `begin`: of tile `tile` in a group of `tiles`.
class PackedPiece {
 public:
  PackedPiece(const PackedMatrix& matrix, const std::byte* begin, size_t tiles, size_t tile,
              int row)
      : matrix_(matrix),
        tiles_(tiles),
        tile_(tile),
        begin_(begin + tile * head_bytes()),
        row_(row) {}

  PackedScale at(int block, int column) const {
    const double factor = static_cast<double>(matrix_.factor);
    const size_t half = column >= 16 ? 1 : 0;
    switch (matrix_.scales) {
      case PackedScales::kNone:
        return {1};
      case PackedScales::kF32:
        return {number(DType::kF32, 0)};
      case PackedScales::kF16:
        return {number(DType::kF16, 0)};
      case PackedScales::kBF16:
        return {number(DType::kBF16, 0)};
      case PackedScales::kE8M0:
        return {factor * e8m0_of(byte(0))};
      case PackedScales::kTileF32:
        return {static_cast<double>(load_element(begin_, DType::kF32, 0))};
      case PackedScales::kF32Bias:
        return {number(DType::kF32, 0), number(DType::kF32, 64)};
      case PackedScales::kF16Bias:
        return {number(DType::kF16, 0), number(DType::kF16, 32)};
      case PackedScales::kBF16Bias:
        return {number(DType::kBF16, 0), number(DType::kBF16, 32)};
      case PackedScales::kF32Zero:
        return {number(DType::kF32, 0), 0, byte(64)};
      case PackedScales::kF16Zero:
        return {number(DType::kF16, 0), 0, byte(32)};
      case PackedScales::kBF16Zero:
        return {number(DType::kBF16, 0), 0, byte(32)};
      case PackedScales::kE4M3Halves:
        return {factor * e4m3_of(byte(of_block(block) + 16 * half))};
      case PackedScales::kSuper:
        return {number(DType::kF16, 0) * signed_byte(of_block(block))};
      case PackedScales::kSuperMin:
        return {number(DType::kF16, 0) * byte(of_block(block)),
                -(number(DType::kF16, 32) * byte(of_block(block) + 16))};
      case PackedScales::kSuperHalves:
        return {number(DType::kF16, 0) * signed_byte(of_block(block) + 16 * half)};
      case PackedScales::kSuperMinHalves:
        return {number(DType::kF16, 0) * byte(of_block(block) + 16 * half),
                -(number(DType::kF16, 32) * byte(of_block(block) + 32 + 16 * half))};
    }
    return {};
  }
  size_t head_bytes() const {
    constexpr size_t kBytes[] = {0,  64, 32, 32, 16, 4,  128, 64, 64,
                                 80, 48, 48, 0,  32, 64, 32,  64};  // indexed by PackedScales
    return kBytes[static_cast<size_t>(matrix_.scales)];
  }
  size_t block_bytes() const {
    constexpr size_t kBytes[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 16, 32, 32, 64};
    return kBytes[static_cast<size_t>(matrix_.scales)];
  }

 private:
  size_t of_block(int block) const {
    return (tiles_ - tile_) * head_bytes() +
           (static_cast<size_t>(block) * tiles_ + tile_) * block_bytes();
  }
  double number(DType type, size_t array) const {
    return static_cast<double>(load_element(begin_ + array, type, static_cast<size_t>(row_)));
  }
  int byte(size_t array) const { return byte_of(begin_, array + static_cast<size_t>(row_)); }
  int signed_byte(size_t array) const { return static_cast<int8_t>(byte(array)); }

  const PackedMatrix& matrix_;
  size_t tiles_, tile_;
  const std::byte* begin_;  // the tile's head
  int row_;
};

inline double packed_value(const PackedMatrix& matrix, int code, const PackedScale& scale) {
  if (matrix.codes == PackedCodes::kFp8) return e4m3_of(code) * scale.scale;
  if (matrix.codes == PackedCodes::kTable4) code = matrix.table[code];
  return scale.scale * (code - matrix.code_offset - scale.zero) + scale.bias;
}

inline double coded_weight(PackedCodes codes, const std::byte* at, int lane) {
  ColumnScale by;
  std::memcpy(&by, at, sizeof by);
  at += sizeof by;
  const int byte = static_cast<int>(at[codes == PackedCodes::kColumnBits4 ? lane / 2 : lane]);
  const int code = codes == PackedCodes::kColumnBits4 ? byte >> (4 * (lane % 2)) & 15 : byte;
  const double value = codes == PackedCodes::kColumnFp8 ? e4m3_of(code) : code;
  return static_cast<double>(std::fma(by.scale, static_cast<float>(value), by.bias));
}

// Weights (rows, columns) of the tiles that `plan` describes; NaN where no block has a column.
inline std::vector<double> read_packed(const PackPlan& plan, const std::byte* tiles) {
  const PackedMatrix& matrix = plan.matrix;
  const auto columns = static_cast<size_t>(matrix.columns);
  std::vector<double> weights(static_cast<size_t>(matrix.rows) * columns,
                              std::numeric_limits<double>::quiet_NaN());
  for (int row = 0; row < matrix.rows; ++row) {
    const std::byte* tile = tiles + static_cast<size_t>(row / kLanes) * matrix.tile_bytes;
    double* out = weights.data() + static_cast<size_t>(row) * columns;
    const int lane = row % kLanes;
    if (has_coded_columns(matrix.codes)) {
      for (size_t column = 0; column < columns; ++column) {
        out[column] = coded_weight(matrix.codes, tile + column * column_bytes(matrix.codes), lane);
      }
      continue;
    }
    if (is_plain(matrix.codes)) {
      const DType type = matrix.codes == PackedCodes::kF32   ? DType::kF32
                         : matrix.codes == PackedCodes::kF16 ? DType::kF16
                                                             : DType::kBF16;
      for (size_t column = 0; column < columns; ++column) {
        const size_t at = column * kLanes + static_cast<size_t>(lane);
        out[column] = static_cast<double>(load_element(tile, type, at));
      }
      continue;
    }
    // The tile's group: its tiles, and the number of this one among them.
    const int first = row / kLanes / kGroupTiles * kGroupTiles;
    const auto group_tiles =
        static_cast<size_t>(std::min(kGroupTiles, tile_count(matrix.rows) - first));
    const auto own = static_cast<size_t>(row / kLanes - first);
    const std::byte* group = tiles + static_cast<size_t>(first) * matrix.tile_bytes;
    size_t block_bytes = 0;
    for (const int bits : planes_of(matrix.codes)) block_bytes += static_cast<size_t>(bits) * 64;
    const std::byte* codes = group + own * block_bytes;
    const std::byte* scales = group + group_tiles * matrix.scales_at;
    const BlockColumns* block = plan.blocks.data();
    for (const uint16_t count : plan.piece_blocks) {
      const PackedPiece piece(matrix, scales, group_tiles, own, lane);
      for (int i = 0; i < count; ++i, ++block, codes += group_tiles * block_bytes) {
        for (int column = 0; column < kBlockColumns; ++column) {
          const int code = packed_code(matrix.codes, codes, lane, column);
          if (column < block->count) {
            out[block->begin + column] = packed_value(matrix, code, piece.at(i, column));
          } else if (code != 0) {
            FAIL("a short block is not filled up with code 0");
          }
        }
      }
      scales += group_tiles * (piece.head_bytes() + count * piece.block_bytes());
    }
    if (codes > group + group_tiles * matrix.scales_at + own * block_bytes ||
        scales > group + group_tiles * matrix.tile_bytes) {
      FAIL("a group is too short for its pieces");
    }
  }
  return weights;
}

}  // namespace lockstep::testing
