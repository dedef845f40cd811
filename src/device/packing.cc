#include "device/packing.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

template <class Element>
void pack_tile(const MatrixSource& source, int tile, Element* packed) {
  const int first = tile * kLanes;
  const int rows = std::min(kLanes, source.rows - first);
  const auto columns = static_cast<size_t>(source.columns);
  const size_t column_bytes = source.column_bytes > 0 ? source.column_bytes : sizeof(Element);
  if (rows < kLanes) std::memset(packed, 0, columns * kLanes * sizeof(Element));
  for (int row = 0; row < rows; ++row) {
    const std::byte* from = source.data + static_cast<size_t>(first + row) * source.row_bytes;
    for (size_t column = 0; column < columns; ++column) {
      std::memcpy(packed + column * kLanes + static_cast<size_t>(row), from + column * column_bytes,
                  sizeof(Element));
    }
  }
}

}  // namespace

void pack_tiles(const MatrixSource& source, int begin, int end, std::byte* packed) {
  const size_t tile_elements = static_cast<size_t>(source.columns) * kLanes;
  for (int tile = begin; tile < end; ++tile) {
    const size_t at = static_cast<size_t>(tile) * tile_elements;
    if (source.dtype == DType::kF32) {
      pack_tile(source, tile, reinterpret_cast<uint32_t*>(packed) + at);
    } else {
      pack_tile(source, tile, reinterpret_cast<uint16_t*>(packed) + at);
    }
  }
}

}  // namespace lockstep
