// Reorders one tile's codes from the stored to the kernels' order. Used only by packing.cc.
#pragma once

#include <cstddef>
#include <span>

#include "device/packing/packing.h"

namespace lockstep {

// `packed` is the beginning of the tile; rows beyond `stored_rows` get code 0.
void pack_codes(const MatrixSource& source, const PackPlan& plan, std::span<const int> stored_rows,
                std::byte* packed);

}  // namespace lockstep
