// Checks that the parts of a stored matrix have the sizes that its shape requires, so that readers
// need no bounds checks.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "tensor/stored_matrix.h"

namespace lockstep {

// kCorrupt or kUnsupported says what is wrong.
Status check_stored_matrix(const StoredMatrix& matrix);

struct MatrixPart {
  int row_begin = 0;
  int rows = 0;
  int column_begin = 0;
  int columns = 0;
};
// Whether no code or scale of the part is the NaN of an 8-bit float (E4M3, E8M0). The matrix must
// have passed check_stored_matrix(). True for GGUF, whose blocks have no such codes.
bool are_small_floats_numbers(const StoredMatrix& matrix, const MatrixPart& part);

// The type of plain elements; nullopt for quantised ones.
std::optional<DType> plain_element_type(const StoredMatrix& matrix);

// The matrix's bytes in its files. Parts shared through a row map count in proportion to its rows:
// the other rows belong to other matrices.
uint64_t stored_bytes(const StoredMatrix& matrix);

// Groups of columns in a row; for GPTQ and AWQ, in all columns.
inline size_t scale_groups(const StoredMatrix& matrix) {
  if (matrix.group == 0) return 1;
  return (static_cast<size_t>(matrix.columns) + static_cast<size_t>(matrix.group) - 1) /
         static_cast<size_t>(matrix.group);
}
inline size_t scale_group_of(const StoredMatrix& matrix, int column) {
  return matrix.group == 0 ? 0 : static_cast<size_t>(column / matrix.group);
}
inline size_t row_group_of(const StoredMatrix& matrix, int stored_row) {
  return matrix.row_group == 0 ? 0 : static_cast<size_t>(stored_row / matrix.row_group);
}

}  // namespace lockstep
