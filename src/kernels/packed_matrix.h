// PackedMatrix: weights as the kernels read them, and the activations they are multiplied with.
// device/packing makes both from a checkpoint's formats. Included by files compiled for one
// instruction set: <cstddef> and <cstdint> only.
//
// A matrix is cut into tiles of kLanes rows. Plain elements are stored as (tile, column, row in
// tile), and coded columns as (tile, column). Other quantised codes are in blocks of kBlockColumns
// columns. A block never crosses the border of a leaf or of columns with one scale; a short block
// is padded with code 0, which meets activations of 0. A piece is one or more blocks that share the
// rows' scales; so the columns of a leaf are whole pieces, each of whole blocks.
//
// Tiles of a quantised matrix form groups of kGroupTiles; the last group may have fewer. A group is
// one stretch of memory that is read from its beginning to its end: the codes as (block, tile), and
// then, `scales_at` bytes for each tile after its beginning, the scales as pieces; a piece has the
// heads of all tiles, then for each of its blocks the data of all tiles.
//
// Codes of a block: quad k has columns 4k .. 4k+3 as 64 bytes, (row, column in quad). By bits:
//   8: quads 0 .. 7.
//   4: four vectors of 64 bytes; vector i has quad 2i in its low nibbles, 2i + 1 in the high ones.
//   2: two vectors; bits 2m, 2m + 1 of vector i are quad 4i + m.
//   1: one vector; bit k is quad k.
//   3, 5, 6: the low 2, 4, 4 bits as above, then the other 1, 1, 2 bits as above.
// So a block has 64 * bits bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

// Rows of a packed matrix and keys of a cached head are grouped by this.
inline constexpr int kLanes = 16;
// Tiles of a quantised matrix whose blocks are next to each other.
inline constexpr int kGroupTiles = 4;
inline constexpr int kLeafStepsMax = 64;
// The deepest stack of unfinished sums while adding kLeafStepsMax leaves in a binary tree.
inline constexpr int kTreeDepth = 7;
inline constexpr int kBlockColumns = 32;
// Columns of plain elements that are one chain of fused multiply-adds. A leaf's runs start at its
// first column; its last run may be shorter.
inline constexpr int kPlainRunColumns = 256;
// A norm adds squares in this many lanes: column c in lane c % kNormLanes.
inline constexpr int kNormLanes = 128;
// Activations of a block whose largest magnitude is below this count as zeros: no scale or factor
// of a block is subnormal.
inline constexpr float kBlockLeast = 0x1p-100f;

enum class PackedCodes : int32_t {
  kF32,
  kF16,
  kBF16,
  kBits2,  // unsigned, then `code_offset` is subtracted
  kBits3,
  kBits4,
  kBits5,
  kBits6,
  kBits8,
  kTable4,  // 4 bits that index `table`, then `code_offset` is subtracted
  kFp8,     // E4M3
  // Coded columns.
  kColumnBits4,  // unsigned
  kColumnBits8,
  kColumnFp8,  // E4M3
};
// These and those below are always inlined: called from a file that is compiled for one instruction
// set, a copy of them could be linked into the baseline program.
[[gnu::always_inline]] inline constexpr bool is_plain(PackedCodes codes) {
  return codes == PackedCodes::kF32 || codes == PackedCodes::kF16 || codes == PackedCodes::kBF16;
}
[[gnu::always_inline]] inline constexpr bool has_coded_columns(PackedCodes codes) {
  return codes >= PackedCodes::kColumnBits4;
}
// Whether products take the activations as they are, column by column.
[[gnu::always_inline]] inline constexpr bool is_by_column(PackedCodes codes) {
  return is_plain(codes) || has_coded_columns(codes);
}

// A coded column of a tile begins with this, and the rows' codes follow, the lower nibble first.
// Its rows share a scale, as in a quantised matrix that is used transposed. weight = scale * code +
// bias, rounded once.
struct ColumnScale {
  float scale;
  float bias;
};
// Bytes of a tile's column, if it is by column.
[[gnu::always_inline]] inline constexpr size_t column_bytes(PackedCodes codes) {
  switch (codes) {
    case PackedCodes::kF32:
      return sizeof(float) * kLanes;
    case PackedCodes::kF16:
    case PackedCodes::kBF16:
      return sizeof(uint16_t) * kLanes;
    case PackedCodes::kColumnBits4:
      return sizeof(ColumnScale) + kLanes / 2;
    default:
      return sizeof(ColumnScale) + kLanes;
  }
}

// A tile's part of a piece: its head, then data of each of its blocks. Arrays have kLanes rows.
// weight = scale * (code - code_offset) + bias. The stream of scales is not aligned.
enum class PackedScales : int32_t {
  kNone,      // plain elements and coded columns
  kF32,       // head: scale
  kF16,       // head: scale
  kBF16,      // head: scale
  kE8M0,      // head: 8-bit exponent, scale = factor * 2^(e - 127)
  kTileF32,   // head: one float, the scale of all rows
  kF32Bias,   // head: scale, bias
  kF16Bias,   // head: scale, bias
  kBF16Bias,  // head: scale, bias
  kF32Zero,   // head: scale, uint8 zero: weight = scale * (code - zero)
  kF16Zero,   // head: scale, uint8 zero
  kBF16Zero,  // head: scale, uint8 zero
  // A block's columns 0-15 and 16-31 have separate scales ("halves").
  kE4M3Halves,  // no head; block: E4M3 byte of each half, scale = factor * byte
  // ggml's super-blocks.
  kSuper,           // head: F16 d; block: int8 s, scale = d * s
  kSuperMin,        // head: F16 d, F16 m; block: uint8 s, uint8 t; scale = d * s, bias = -(m * t)
  kSuperHalves,     // head: F16 d; block: int8 s of each half
  kSuperMinHalves,  // head: F16 d, F16 m; block: uint8 s of each half, then uint8 t of each half
};

[[gnu::always_inline]] inline constexpr int tile_count(int rows) {
  return (rows + kLanes - 1) / kLanes;
}

// The group of a tile: its first tile, and how many it has.
struct TileGroup {
  int32_t first;
  int32_t tiles;
};
[[gnu::always_inline]] inline constexpr TileGroup group_of(int rows, int tile) {
  const int first = tile / kGroupTiles * kGroupTiles;
  const int left = tile_count(rows) - first;
  return {first, left < kGroupTiles ? left : kGroupTiles};
}

// Bytes of a tile's part of a piece.
struct ScaleBytes {
  size_t of_head;
  size_t of_block;  // of each of its blocks
};
[[gnu::always_inline]] inline constexpr ScaleBytes scale_bytes(PackedScales scales) {
  constexpr size_t kByte = kLanes, kHalf = 2 * kLanes, kFloat = 4 * kLanes;
  switch (scales) {
    case PackedScales::kNone:
      return {0, 0};
    case PackedScales::kF32:
      return {kFloat, 0};
    case PackedScales::kF16:
    case PackedScales::kBF16:
      return {kHalf, 0};
    case PackedScales::kE8M0:
      return {kByte, 0};
    case PackedScales::kTileF32:
      return {sizeof(float), 0};
    case PackedScales::kF32Bias:
      return {2 * kFloat, 0};
    case PackedScales::kF16Bias:
    case PackedScales::kBF16Bias:
      return {2 * kHalf, 0};
    case PackedScales::kF32Zero:
      return {kFloat + kByte, 0};
    case PackedScales::kF16Zero:
    case PackedScales::kBF16Zero:
      return {kHalf + kByte, 0};
    case PackedScales::kE4M3Halves:
      return {0, 2 * kByte};
    case PackedScales::kSuper:
      return {kHalf, kByte};
    case PackedScales::kSuperMin:
      return {2 * kHalf, 2 * kByte};
    case PackedScales::kSuperHalves:
      return {kHalf, 2 * kByte};
    case PackedScales::kSuperMinHalves:
      return {2 * kHalf, 4 * kByte};
  }
  return {0, 0};
}

// One leaf of the columns of a matrix: a sum over its columns in ascending order, starting from
// zero. After it, the two topmost sums are added `merges` times; `ends_subtree` then writes the sum
// as the next subtree of the output. A matrix whose columns are not cut is one step with all
// columns.
struct LeafStep {
  int32_t columns;
  int32_t merges;
  int32_t ends_subtree;
  int32_t pieces = 0;  // for a quantised matrix; filled in by device/packing
};

struct PackedMatrix {
  PackedCodes codes;
  PackedScales scales;
  bool has_integer_input;  // activations are InputBlock8, else InputBlockF; not by column
  int32_t rows;            // without padding
  int32_t columns;
  int32_t code_offset;
  float factor;
  const uint8_t* table;  // 16 bytes, for kTable4
  const std::byte* tiles;
  size_t tile_bytes;             // of one tile, a multiple of 64; groups have that of their tiles
  size_t scales_at;              // the part of tile_bytes that is codes
  const uint16_t* piece_blocks;  // the number of blocks in each piece, over all leaves
  int32_t block_count;           // of all pieces
  const LeafStep* steps;
  int32_t step_count;  // at most kLeafStepsMax
};

// The columns of the input that a block is multiplied with; `count` is at most kBlockColumns.
struct BlockColumns {
  int32_t begin;
  int32_t count;
};

// Activations of one block as integers: value = code * scale.
struct InputBlock8 {
  int8_t codes[kBlockColumns];
  float scale;
  int32_t sum;           // of the codes
  int32_t half_sums[2];  // of columns 0-15 and 16-31
};

// Activations of one block as floats.
struct InputBlockF {
  float values[kBlockColumns];
  float sum;
  float half_sums[2];
  float padding;
};

}  // namespace lockstep
