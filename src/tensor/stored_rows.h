// The weights of a stored matrix as float32: the format's value, rounded once if it is not a float.
// For matrices without their own packed form, for writing other checkpoints and for tests; the
// kernels read packed matrices instead (kernels/packed_matrix.h).
#pragma once

#include <cstddef>
#include <span>

#include "tensor/stored_matrix.h"

namespace lockstep {

// Columns [column_begin, column_begin + out.size()) of row `row`, before row_map and
// column_map. The matrix must have passed check_stored_matrix(); row and columns must be inside it.
void dequantise_row(const StoredMatrix& matrix, int row, int column_begin, std::span<float> out);

// The zero point, including GPTQ's bias (so at most 256); only if the matrix has zero points.
int stored_zero(const StoredMatrix& matrix, int stored_row, size_t group);

}  // namespace lockstep
