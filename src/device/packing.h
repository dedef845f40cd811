// The layout of matrices for the processor's kernels: tiles of kLanes rows, (tile, column, row in
// tile), rows padded with zeros.
#pragma once

#include "device/device.h"

namespace lockstep {

constexpr int tile_count(int rows) {
  return (rows + kLanes - 1) / kLanes;
}
inline size_t packed_bytes(const MatrixSource& source) {
  return static_cast<size_t>(tile_count(source.rows)) * kLanes *
         static_cast<size_t>(source.columns) * dtype_bytes(source.dtype);
}

// Fills tiles [begin, end) of `packed`.
void pack_tiles(const MatrixSource& source, int begin, int end, std::byte* packed);

}  // namespace lockstep
