// IndexShape: the part of a page that the index of a layer with sparse attention takes, the same on
// every rank: its keys, one for each position; or, if several positions share a key, first a key
// and a gate of each position, as they are stored, then the pools' keys as float32. Pure functions.
#pragma once

#include <cstddef>

#include "kernels/kernels.h"

namespace lockstep {

struct IndexShape {
  int dim = 0;   // of a key; 0: there is no index
  int pool = 1;  // positions that share a key

  bool has_pools() const { return dim > 0 && pool > 1; }
  // Bytes of a page.
  size_t inputs(KvKind kind) const { return has_pools() ? page_head_stride(kind, 2 * dim) : 0; }
  size_t keys(KvKind kind) const {
    if (dim == 0) return 0;
    if (!has_pools()) return page_head_stride(kind, dim);
    const int groups = (kPagePositions / pool + kLanes - 1) / kLanes;
    return static_cast<size_t>(groups * kLanes * dim) * sizeof(float);
  }
  size_t bytes(KvKind kind) const { return inputs(kind) + keys(kind); }
};

}  // namespace lockstep
