// The bytes of its files from which a part of a stored matrix is read. For code that must know this
// before the bytes are there (model/load/rank_reads.h) or checks that they are
// (model/load/weights.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tensor/stored_check.h"
#include "tensor/stored_matrix.h"

namespace lockstep {

// Empty for an empty part. Contiguous rows count as a whole, whichever columns are read: reading
// some columns touches nearly every page of the rows. The matrix must have passed
// check_stored_matrix().
std::vector<std::span<const std::byte>> stored_ranges(const StoredMatrix& matrix,
                                                      const MatrixPart& part);

}  // namespace lockstep
