// Plain elements of up to sixteen rows, interleaved into one tile. Used by packing.cc alone.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep {

// out (columns, kLanes) from `rows`, at most kLanes and each of `columns` elements of 2 or 4 bytes;
// rows that are not there become 0.
void transpose_rows(std::span<const std::byte* const> rows, size_t columns, size_t element_bytes,
                    std::byte* out);

}  // namespace lockstep
