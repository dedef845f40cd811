// Writes the scales of one tile as the stream that the kernels read after its codes. Used only by
// packing.cc.
#pragma once

#include <cstddef>
#include <span>

#include "device/packing/packing.h"

namespace lockstep {

// `out` holds zeros, which remain for rows beyond `stored_rows`.
void pack_scales(const MatrixSource& source, const PackPlan& plan, std::span<const int> stored_rows,
                 std::byte* out);

}  // namespace lockstep
