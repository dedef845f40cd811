#include "device/packing/pack_scales.h"

#include <cstring>

#include "base/check.h"
#include "device/packing/pack_layout.h"
#include "tensor/ggml_blocks.h"
#include "tensor/half.h"
#include "tensor/stored_check.h"
#include "tensor/stored_rows.h"

namespace lockstep {
namespace {

// Calls each(first block, its count, beginning of the piece's scales) for all pieces of a tile.
template <class Each>
void for_each_piece(const PackPlan& plan, std::byte* out, Each each) {
  const ScaleBytes bytes = scale_bytes(plan.matrix.scales);
  const BlockColumns* blocks = plan.blocks.data();
  for (const uint16_t count : plan.piece_blocks) {
    each(blocks, size_t{count}, out);
    out += bytes.of_head + count * bytes.of_block;
    blocks += count;
  }
}

// Where the scales of the tile's rows are: group g of row i is element first[i] + g * step.
struct ScaleGrid {
  size_t first[kLanes] = {};
  size_t lanes = 0;
  size_t step = 1;
};

ScaleGrid scale_grid(const StoredMatrix& stored, std::span<const int> stored_rows) {
  ScaleGrid grid;
  grid.lanes = stored_rows.size();
  const bool is_by_column =
      stored.format == StoredFormat::kGptq || stored.format == StoredFormat::kAwq;
  if (is_by_column) grid.step = static_cast<size_t>(stored.rows);
  for (size_t lane = 0; lane < grid.lanes; ++lane) {
    grid.first[lane] = is_by_column
                           ? static_cast<size_t>(stored_rows[lane])
                           : row_group_of(stored, stored_rows[lane]) * scale_groups(stored);
  }
  return grid;
}

template <size_t kBytes>
void gather(const std::byte* from, const ScaleGrid& grid, size_t group, std::byte* out) {
  for (size_t lane = 0; lane < grid.lanes; ++lane) {
    std::memcpy(out + lane * kBytes, from + (grid.first[lane] + group * grid.step) * kBytes,
                kBytes);
  }
}

void gather_as_f32(const StoredMatrix& stored, const ScaleGrid& grid, size_t group, size_t lanes,
                   std::byte* out) {
  for (size_t lane = 0; lane < lanes; ++lane) {
    const float scale =
        load_element(stored.scales.data(), stored.scale_type, grid.first[lane] + group * grid.step);
    std::memcpy(out + lane * sizeof scale, &scale, sizeof scale);
  }
}

// Two E4M3 scales per block; a block of 16 columns or fewer has only one.
void gather_halves(const StoredMatrix& stored, const ScaleGrid& grid, int column_begin,
                   const BlockColumns* blocks, size_t count, std::byte* out) {
  for (size_t i = 0; i < count; ++i) {
    const size_t group = scale_group_of(stored, column_begin + blocks[i].begin);
    gather<1>(stored.scales.data(), grid, group, out);
    if (blocks[i].count > 16) gather<1>(stored.scales.data(), grid, group + 1, out + kLanes);
    out += 2 * kLanes;
  }
}

void put_zeros(const StoredMatrix& stored, std::span<const int> stored_rows, size_t group,
               std::byte* out) {
  for (size_t lane = 0; lane < stored_rows.size(); ++lane) {
    out[lane] = static_cast<std::byte>(stored_zero(stored, stored_rows[lane], group));
  }
}

void pack_grid_scales(const MatrixSource& source, const PackPlan& plan,
                      std::span<const int> stored_rows, std::byte* out) {
  const StoredMatrix& stored = source.stored;
  const ScaleGrid grid = scale_grid(stored, stored_rows);
  const std::byte* scales = stored.scales.data();
  for_each_piece(plan, out, [&](const BlockColumns* blocks, size_t count, std::byte* to) {
    const size_t group = scale_group_of(stored, source.column_begin + blocks[0].begin);
    switch (plan.matrix.scales) {
      case PackedScales::kTileF32:
        return gather_as_f32(stored, grid, group, 1, to);
      case PackedScales::kF32:
        return gather_as_f32(stored, grid, group, grid.lanes, to);
      case PackedScales::kF16:
      case PackedScales::kBF16:
        return gather<2>(scales, grid, group, to);
      case PackedScales::kE8M0:
        return gather<1>(scales, grid, group, to);
      case PackedScales::kF32Bias:
        gather<4>(scales, grid, group, to);
        return gather<4>(stored.biases.data(), grid, group, to + 4 * kLanes);
      case PackedScales::kF16Bias:
      case PackedScales::kBF16Bias:
        gather<2>(scales, grid, group, to);
        return gather<2>(stored.biases.data(), grid, group, to + 2 * kLanes);
      case PackedScales::kF32Zero:
        gather<4>(scales, grid, group, to);
        return put_zeros(stored, stored_rows, group, to + 4 * kLanes);
      case PackedScales::kF16Zero:
      case PackedScales::kBF16Zero:
        gather<2>(scales, grid, group, to);
        return put_zeros(stored, stored_rows, group, to + 2 * kLanes);
      case PackedScales::kE4M3Halves:
        return gather_halves(stored, grid, source.column_begin, blocks, count, to);
      default:
        LOCKSTEP_CHECK(false && "scales of ggml in another format");
    }
  });
}

// The offset of a block's f16 d; m follows.
size_t offset_of_d(GgmlType type) {
  switch (type) {
    case GgmlType::kQ2_K:
      return 80;
    case GgmlType::kQ3_K:
      return 108;
    case GgmlType::kQ6_K:
      return 208;
    default:
      return 0;
  }
}

// The scales of 16 or 32 columns in one row, from `column` of the ggml block on: out[0], then
// further ones kLanes apart.
template <PackedScales kScales>
void put_block_scales(const GgmlBlock& format, const std::byte* block, int column, int count,
                      std::byte* out) {
  const int half = column / 16, whole = column / 32;
  if constexpr (kScales == PackedScales::kSuper) {
    out[0] = static_cast<std::byte>(iq4_xs_scale(block, whole));
  } else if constexpr (kScales == PackedScales::kSuperMin) {
    const SixBitPair pair = six_bit_pair(block + 4, whole);
    out[0] = static_cast<std::byte>(pair.scale);
    out[kLanes] = static_cast<std::byte>(pair.minimum);
  } else if constexpr (kScales == PackedScales::kSuperHalves) {
    for (int i = 0; i < (count > 16 ? 2 : 1); ++i) {
      out[i * kLanes] = format.type == GgmlType::kQ3_K
                            ? static_cast<std::byte>(q3_scale(block + 96, half + i))
                            : block[192 + half + i];
    }
  } else {
    for (int i = 0; i < (count > 16 ? 2 : 1); ++i) {
      out[i * kLanes] = block[half + i] & std::byte{15};
      out[(2 + i) * kLanes] = block[half + i] >> 4;
    }
  }
}

// `head_numbers` f16 numbers of the piece, then the scales of its blocks if it has any.
template <PackedScales kScales>
void pack_ggml(const MatrixSource& source, const PackPlan& plan, std::span<const int> stored_rows,
               size_t head_numbers, std::byte* out) {
  const StoredMatrix& stored = source.stored;
  const GgmlBlock& format = *find_ggml_block(stored.gguf_type);
  const size_t d = offset_of_d(format.type);
  const size_t head_bytes = head_numbers * 2 * kLanes;
  const size_t block_bytes = scale_bytes(kScales).of_block;
  for_each_piece(plan, out, [&](const BlockColumns* blocks, size_t count, std::byte* to) {
    const int first = stored.stored_column(source.column_begin + blocks[0].begin);
    const size_t offset =
        static_cast<size_t>(first / format.columns) * static_cast<size_t>(format.bytes);
    for (size_t lane = 0; lane < stored_rows.size(); ++lane) {
      const std::byte* block =
          stored.codes.data() + static_cast<size_t>(stored_rows[lane]) * stored.row_bytes + offset;
      for (size_t i = 0; i < head_numbers; ++i) {
        std::memcpy(to + (i * kLanes + lane) * 2, block + d + i * 2, 2);
      }
      if (block_bytes == 0) continue;
      for (size_t i = 0; i < count; ++i) {
        const int column =
            stored.stored_column(source.column_begin + blocks[i].begin) % format.columns;
        put_block_scales<kScales>(format, block, column, blocks[i].count,
                                  to + head_bytes + i * block_bytes + lane);
      }
    }
  });
}

void pack_ggml_exponents(const MatrixSource& source, const PackPlan& plan,
                         std::span<const int> stored_rows, std::byte* out) {
  const StoredMatrix& stored = source.stored;
  const GgmlBlock& format = *find_ggml_block(stored.gguf_type);
  for_each_piece(plan, out, [&](const BlockColumns* blocks, size_t, std::byte* to) {
    const int first = stored.stored_column(source.column_begin + blocks[0].begin);
    for (size_t lane = 0; lane < stored_rows.size(); ++lane) {
      to[lane] = stored.codes[static_cast<size_t>(stored_rows[lane]) * stored.row_bytes +
                              static_cast<size_t>(first / format.columns) *
                                  static_cast<size_t>(format.bytes)];
    }
  });
}

}  // namespace

void pack_scales(const MatrixSource& source, const PackPlan& plan, std::span<const int> stored_rows,
                 std::byte* out) {
  if (source.stored.format != StoredFormat::kGguf) {
    return pack_grid_scales(source, plan, stored_rows, out);
  }
  switch (plan.matrix.scales) {
    case PackedScales::kF16:
      return pack_ggml<PackedScales::kF16>(source, plan, stored_rows, 1, out);
    case PackedScales::kF16Bias:
      return pack_ggml<PackedScales::kF16Bias>(source, plan, stored_rows, 2, out);
    case PackedScales::kSuper:
      return pack_ggml<PackedScales::kSuper>(source, plan, stored_rows, 1, out);
    case PackedScales::kSuperMin:
      return pack_ggml<PackedScales::kSuperMin>(source, plan, stored_rows, 2, out);
    case PackedScales::kSuperHalves:
      return pack_ggml<PackedScales::kSuperHalves>(source, plan, stored_rows, 1, out);
    case PackedScales::kSuperMinHalves:
      return pack_ggml<PackedScales::kSuperMinHalves>(source, plan, stored_rows, 2, out);
    default:
      return pack_ggml_exponents(source, plan, stored_rows, out);
  }
}

}  // namespace lockstep
