#include "device/packing/packing.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/packing/pack_codes.h"
#include "device/packing/pack_columns.h"
#include "device/packing/pack_layout.h"
#include "device/packing/pack_plain.h"
#include "device/packing/pack_scales.h"
#include "tensor/stored_check.h"
#include "tensor/stored_rows.h"

namespace lockstep {
namespace {

constexpr size_t kTileAlignment = 64;
constexpr int kBlocksPerPieceMax = 65'535;  // piece_blocks is uint16

size_t align_up(size_t bytes) {
  return (bytes + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
}

int64_t next_multiple(int64_t after, int64_t of) {
  return (after / of + 1) * of;
}

// One past the last column of the block that begins at `column`.
int64_t block_end(const PackLayout& layout, int64_t column, int64_t piece_end) {
  int64_t end = column + kBlockColumns;
  if (layout.has_block_grid) {
    end = next_multiple(column, kBlockColumns);
    // A block has the same halves as the stored matrix. Columns before a half's border form their
    // own block, with an empty second half.
    if (layout.has_halves && column % 16 != 0) end = next_multiple(column, 16);
  }
  return std::min(end, piece_end);
}

// Cuts one leaf, from column `begin` of the stored matrix on, and returns its number of pieces.
int32_t cut_leaf(const PackLayout& layout, int64_t begin, int64_t columns, int64_t column_begin,
                 PackPlan& plan) {
  const size_t pieces_before = plan.piece_blocks.size();
  const int64_t leaf_end = begin + columns;
  for (int64_t column = begin; column < leaf_end;) {
    int64_t piece_end = leaf_end;
    if (layout.piece_columns > 0) {
      piece_end = std::min(piece_end, next_multiple(column, layout.piece_columns));
    }
    int blocks = 0;
    while (column < piece_end && blocks < kBlocksPerPieceMax) {
      const int64_t end = block_end(layout, column, piece_end);
      plan.blocks.push_back(
          {static_cast<int32_t>(column - column_begin), static_cast<int32_t>(end - column)});
      column = end;
      ++blocks;
    }
    plan.piece_blocks.push_back(static_cast<uint16_t>(blocks));
  }
  return static_cast<int32_t>(plan.piece_blocks.size() - pieces_before);
}

void cut_into_blocks(const MatrixSource& source, const PackLayout& layout, PackPlan& plan) {
  int64_t column = source.column_begin;
  for (LeafStep& step : plan.steps) {
    step.pieces = cut_leaf(layout, column, step.columns, source.column_begin, plan);
    column += step.columns;
  }
  PackedMatrix& matrix = plan.matrix;
  matrix.block_count = static_cast<int32_t>(plan.blocks.size());
  const ScaleBytes bytes = scale_bytes(layout.scales);
  matrix.scales_at = plan.blocks.size() * block_code_bytes(layout.codes);
  matrix.tile_bytes = align_up(matrix.scales_at + plan.piece_blocks.size() * bytes.of_head +
                               plan.blocks.size() * bytes.of_block);
}

void check_rectangle(const MatrixSource& source) {
  const StoredMatrix& stored = source.stored;
  LOCKSTEP_CHECK(source.row_begin >= 0 && source.rows >= 0 &&
                 source.rows <= stored.rows - source.row_begin);
  LOCKSTEP_CHECK(!source.is_transposed || stored.column_map.empty());
  LOCKSTEP_CHECK(source.column_begin >= 0 && source.columns >= 0 &&
                 source.columns <= stored.columns - source.column_begin);
  int64_t columns = 0;
  for (const LeafStep& step : source.steps) {
    LOCKSTEP_CHECK(step.columns >= 0);
    columns += step.columns;
  }
  // A rank without a share of the matrix may also omit the leaves.
  const int packed_rows = source.is_transposed ? source.columns : source.rows;
  const int packed_columns = source.is_transposed ? source.rows : source.columns;
  LOCKSTEP_CHECK(columns == packed_columns || packed_rows == 0);
}

// The stored rows of a tile.
struct TileRows {
  int stored[kLanes] = {};
  int count = 0;
};

TileRows rows_of_tile(const MatrixSource& source, int tile) {
  TileRows rows;
  const int first = tile * kLanes;
  rows.count = std::min(kLanes, source.rows - first);
  for (int lane = 0; lane < rows.count; ++lane) {
    rows.stored[lane] = source.stored.stored_row(source.row_begin + first + lane);
  }
  return rows;
}

void pack_plain_tile(const MatrixSource& source, DType type, int tile, std::byte* packed) {
  const StoredMatrix& stored = source.stored;
  const TileRows rows = rows_of_tile(source, tile);
  const size_t element = dtype_bytes(type);
  for (int column = 0; column < source.columns;) {
    const int at = source.column_begin + column;
    const int count = std::min(stored.adjacent_columns(at), source.columns - column);
    const std::byte* begins[kLanes] = {};
    for (int lane = 0; lane < rows.count; ++lane) {
      begins[lane] = stored.codes.data() +
                     static_cast<size_t>(rows.stored[lane]) * stored.row_bytes +
                     static_cast<size_t>(stored.stored_column(at)) * element;
    }
    transpose_rows({begins, static_cast<size_t>(rows.count)}, static_cast<size_t>(count), element,
                   packed + static_cast<size_t>(column) * kLanes * element);
    column += count;
  }
}

// In a stored row the tile's sixteen elements of one column are adjacent.
void pack_transposed_tile(const MatrixSource& source, DType type, int tile, std::byte* packed) {
  const StoredMatrix& stored = source.stored;
  const int first = tile * kLanes, count = std::min(kLanes, source.columns - first);
  const size_t element = dtype_bytes(type);
  if (count < kLanes) std::memset(packed, 0, static_cast<size_t>(source.rows) * kLanes * element);
  for (int row = 0; row < source.rows; ++row) {
    const int stored_row = stored.stored_row(source.row_begin + row);
    std::memcpy(packed + static_cast<size_t>(row) * kLanes * element,
                stored.codes.data() + static_cast<size_t>(stored_row) * stored.row_bytes +
                    static_cast<size_t>(source.column_begin + first) * element,
                static_cast<size_t>(count) * element);
  }
}

// Checks the tile's sixteen rows, or columns if the source is transposed.
bool are_numbers_of_tile(const MatrixSource& source, int tile) {
  const int first = tile * kLanes;
  MatrixPart part{source.row_begin, source.rows, source.column_begin, source.columns};
  if (source.is_transposed) {
    part.column_begin += first;
    part.columns = std::min(kLanes, source.columns - first);
  } else {
    part.row_begin += first;
    part.rows = std::min(kLanes, source.rows - first);
  }
  return are_small_floats_numbers(source.stored, part);
}

void expand_tile(const MatrixSource& source, int tile, std::byte* packed) {
  constexpr int kColumns = 256;  // at a time, so that they stay in the cache
  const int first = tile * kLanes, count = std::min(kLanes, source.rows - first);
  float values[kLanes][kColumns];
  const std::byte* begins[kLanes] = {};
  for (int lane = 0; lane < count; ++lane) {
    begins[lane] = reinterpret_cast<const std::byte*>(values[lane]);
  }
  for (int column = 0; column < source.columns; column += kColumns) {
    const auto columns = static_cast<size_t>(std::min(kColumns, source.columns - column));
    for (int lane = 0; lane < count; ++lane) {
      dequantise_row(source.stored, source.row_begin + first + lane, source.column_begin + column,
                     {values[lane], columns});
    }
    transpose_rows({begins, static_cast<size_t>(count)}, columns, sizeof(float),
                   packed + static_cast<size_t>(column) * kLanes * sizeof(float));
  }
}

void expand_transposed_tile(const MatrixSource& source, int tile, std::byte* packed) {
  const int first = tile * kLanes, count = std::min(kLanes, source.columns - first);
  for (int row = 0; row < source.rows; ++row) {
    float values[kLanes] = {};
    dequantise_row(source.stored, source.row_begin + row, source.column_begin + first,
                   {values, static_cast<size_t>(count)});
    std::memcpy(packed + static_cast<size_t>(row) * sizeof values, values, sizeof values);
  }
}

void pack_by_column(const MatrixSource& source, const PackedMatrix& matrix, int tile,
                    std::byte* packed) {
  const size_t used = static_cast<size_t>(matrix.columns) * column_bytes(matrix.codes);
  std::memset(packed + used, 0, matrix.tile_bytes - used);
  if (has_coded_columns(matrix.codes)) {
    return pack_coded_columns(source, matrix.codes, tile, packed);
  }
  const std::optional<DType> type = plain_element_type(source.stored);
  const bool is_expanded = !type || source.stored.factor != 1;
  if (is_expanded && source.is_transposed) return expand_transposed_tile(source, tile, packed);
  if (is_expanded) return expand_tile(source, tile, packed);
  if (source.is_transposed) return pack_transposed_tile(source, *type, tile, packed);
  pack_plain_tile(source, *type, tile, packed);
}

// Puts the codes and scales of one quantised tile, packed as if it were a group of its own, into
// its group.
void put_in_group(const PackPlan& plan, int tile, const std::byte* packed, std::byte* all_tiles) {
  const PackedMatrix& matrix = plan.matrix;
  const TileGroup of = group_of(matrix.rows, tile);
  const auto tiles = static_cast<size_t>(of.tiles);
  std::byte* group = all_tiles + static_cast<size_t>(of.first) * matrix.tile_bytes;
  const auto put = [&, own = static_cast<size_t>(tile - of.first)](std::byte* to, size_t bytes) {
    if (bytes > 0) std::memcpy(to + own * bytes, packed, bytes);
    packed += bytes;
    return to + tiles * bytes;
  };
  const std::byte* const scales = packed + matrix.scales_at;
  std::byte* to = group;
  const size_t code_bytes = block_code_bytes(matrix.codes);
  for (size_t block = 0; block < plan.blocks.size(); ++block) to = put(to, code_bytes);
  LOCKSTEP_CHECK(packed == scales);
  const ScaleBytes bytes = scale_bytes(matrix.scales);
  for (const uint16_t blocks : plan.piece_blocks) {
    to = put(to, bytes.of_head);
    for (int block = 0; block < blocks; ++block) to = put(to, bytes.of_block);
  }
  if (of.first + of.tiles == tile + 1) {  // the last tile: what aligns the group
    std::memset(to, 0, static_cast<size_t>(group + tiles * matrix.tile_bytes - to));
  }
}

}  // namespace

Result<PackPlan> plan_packing(const MatrixSource& source, bool keeps_float_input) {
  check_rectangle(source);
  TRY(check_stored_matrix(source.stored));
  const PackLayout layout = choose_pack_layout(source);
  PackPlan plan;
  plan.steps = source.steps;
  PackedMatrix& matrix = plan.matrix;
  matrix.codes = layout.codes;
  matrix.scales = layout.scales;
  matrix.has_integer_input =
      !keeps_float_input && !is_by_column(layout.codes) && layout.codes != PackedCodes::kFp8;
  matrix.rows = source.is_transposed ? source.columns : source.rows;
  matrix.columns = source.is_transposed ? source.rows : source.columns;
  matrix.code_offset = layout.code_offset;
  matrix.factor = layout.factor;
  matrix.table = layout.table;
  matrix.step_count = static_cast<int32_t>(plan.steps.size());
  if (is_by_column(layout.codes)) {
    matrix.tile_bytes = align_up(static_cast<size_t>(matrix.columns) * column_bytes(layout.codes));
    matrix.scales_at = matrix.tile_bytes;
  } else {
    cut_into_blocks(source, layout, plan);
  }
  return plan;
}

bool pack_tiles(const MatrixSource& source, const PackPlan& plan, int begin, int end,
                std::byte* tiles) {
  if (plan.bytes() == 0) return true;  // there may be no memory allocated
  bool are_all_numbers = true;
  const PackedMatrix& matrix = plan.matrix;
  std::vector<std::byte> own(is_by_column(matrix.codes) ? 0 : matrix.tile_bytes);
  for (int tile = begin; tile < end; ++tile) {
    are_all_numbers &= are_numbers_of_tile(source, tile);
    if (is_by_column(matrix.codes)) {
      pack_by_column(source, matrix, tile, tiles + static_cast<size_t>(tile) * matrix.tile_bytes);
      continue;
    }
    const TileRows rows = rows_of_tile(source, tile);
    const std::span<const int> stored_rows(rows.stored, static_cast<size_t>(rows.count));
    pack_codes(source, plan, stored_rows, own.data());
    std::memset(own.data() + matrix.scales_at, 0, matrix.tile_bytes - matrix.scales_at);
    pack_scales(source, plan, stored_rows, own.data() + matrix.scales_at);
    put_in_group(plan, tile, own.data(), tiles);
  }
  return are_all_numbers;
}

Error differs_in_input() {
  return {ErrorCode::kUnsupported,
          "it is quantised differently from matrices that share its input, which is not supported"};
}

}  // namespace lockstep
