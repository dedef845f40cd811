// Packs a quantised matrix that is used transposed as coded columns (kernels/packed_matrix.h): a
// stored row's codes become a column's. Used only by this folder.
#pragma once

#include <cstddef>
#include <optional>

#include "device/device.h"
#include "kernels/packed_matrix.h"

namespace lockstep {

// Nullopt unless the sixteen rows of each tile have one scale in each column, and weights are
// scale * code + bias with floats. The stored matrix has passed check_stored_matrix().
std::optional<PackedCodes> coded_columns_of(const MatrixSource& source);

// `packed`: the tile's columns. Rows beyond the matrix get code 0.
void pack_coded_columns(const MatrixSource& source, PackedCodes codes, int tile, std::byte* packed);

}  // namespace lockstep
