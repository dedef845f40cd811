// Which bytes of its files a part of a stored matrix is read from. For who must know that before
// the bytes are there (model/rank_reads.h) and for who checks that they are (model/weights.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tensor/stored_check.h"
#include "tensor/stored_matrix.h"

namespace lockstep {

// None for an empty part. Rows count as a whole where they lie one after the other, whichever
// columns are read: who reads columns of a matrix reads a little of every page of it. The matrix
// has passed check_stored_matrix().
std::vector<std::span<const std::byte>> stored_ranges(const StoredMatrix& matrix,
                                                      const MatrixPart& part);

}  // namespace lockstep
