// Unquantised experts as in gpt-oss' own classes: one tensor of plain floats for all, (experts,
// columns, rows), so that the matrices are transposed compared with other checkpoints, and the rows
// of gate and up projection alternate. For SafetensorsSource.
#pragma once

#include "base/result.h"
#include "tensor/stored_matrix.h"
#include "weights/safetensors/module_tensors.h"
#include "weights/weight_source.h"

namespace lockstep {

// How the matrix's rows are stored: row r is stored as row r * step + first.
struct StoredRows {
  int step = 1;
  int first = 0;
};

// The requested part of the matrix, as rows in its own memory; the rest is undefined. `expert` is
// its part of the stack: (columns, rows * step).
Result<StoredMatrix> transposed_expert(const TensorView& expert, const MatrixRequest& request,
                                       StoredRows rows);

}  // namespace lockstep
