// The codes of one tile, from their stored order to that of the kernels. Used by packing.cc alone.
#pragma once

#include <cstddef>
#include <span>

#include "device/packing.h"

namespace lockstep {

// `packed` is the begin of the tile; rows beyond `stored_rows` get code 0.
void pack_codes(const MatrixSource& source, const PackPlan& plan, std::span<const int> stored_rows,
                std::byte* packed);

}  // namespace lockstep
