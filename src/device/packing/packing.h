// Converts stored matrices to the form that the processor's kernels read (kernels/packed_matrix.h):
// first a plan, then the tiles, which threads share. Codes and scales are moved, never rounded:
// stored formats without a packed form are expanded to float32 (GPTQ with act-order, most quantised
// matrices that are used transposed).
#pragma once

#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "kernels/packed_matrix.h"

namespace lockstep {

struct PackPlan {
  // The plan's owner sets `tiles`, `piece_blocks` and `steps`.
  PackedMatrix matrix{};
  std::vector<uint16_t> piece_blocks;
  std::vector<BlockColumns> blocks;  // relative to the source's first column
  std::vector<LeafStep> steps;       // with `pieces` filled in

  size_t bytes() const { return static_cast<size_t>(tile_count(matrix.rows)) * matrix.tile_bytes; }
};

// `keeps_float_input`: activations are not quantised (--exact). kUnsupported or kCorrupt says what
// is wrong with the stored matrix.
Result<PackPlan> plan_packing(const MatrixSource& source, bool keeps_float_input);
// Fills tiles [begin, end) of `tiles`, which has plan.bytes(). False if a code or scale there is a
// NaN of an 8-bit float: kernels would read it as an ordinary number.
bool pack_tiles(const MatrixSource& source, const PackPlan& plan, int begin, int end,
                std::byte* tiles);

// kUnsupported: the matrix takes its input in another form than MatrixSource::input_like.
Error differs_in_input();

}  // namespace lockstep
