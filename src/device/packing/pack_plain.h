// Interleaves plain elements of up to sixteen rows into one tile. Used only by packing.cc.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep {

// out (columns, kLanes) from `rows`, at most kLanes, each with `columns` elements of 2 or 4 bytes;
// missing rows become 0.
void transpose_rows(std::span<const std::byte* const> rows, size_t columns, size_t element_bytes,
                    std::byte* out);

}  // namespace lockstep
