// The weights of a stored matrix as float32: the value of the format, rounded once where it is no
// float. For matrices that have no packed form of their own, for writing other checkpoints and for
// tests; the kernels read packed matrices instead (kernels/packed_matrix.h).
#pragma once

#include <cstddef>
#include <span>

#include "tensor/stored_matrix.h"

namespace lockstep {

// Columns [column_begin, column_begin + out.size()) of row `row`, before row_map. The matrix has
// passed check_stored_matrix(); row and columns lie inside.
void dequantise_row(const StoredMatrix& matrix, int row, int column_begin, std::span<float> out);

// The zero point, GPTQ's bias included (so at most 256); only where there are zero points.
int stored_zero(const StoredMatrix& matrix, int stored_row, size_t group);

}  // namespace lockstep
