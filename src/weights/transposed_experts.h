// Experts as gpt-oss' own classes keep them where nothing is quantised: one tensor of plain floats
// for all, (experts, columns, rows), so that the matrices lie transposed to those of other
// checkpoints; the rows of gate and up projection take turns. For SafetensorsSource.
#pragma once

#include "base/result.h"
#include "tensor/stored_matrix.h"
#include "weights/module_tensors.h"
#include "weights/weight_source.h"

namespace lockstep {

// Which of the stored rows are the matrix': row r is stored as row r * step + first.
struct StoredRows {
  int step = 1;
  int first = 0;
};

// The part of the matrix that the request names, as rows in memory of its own; the rest is left
// undefined. `expert` is its part of the stack: (columns, rows * step).
Result<StoredMatrix> transposed_expert(const TensorView& expert, const MatrixRequest& request,
                                       StoredRows rows);

}  // namespace lockstep
