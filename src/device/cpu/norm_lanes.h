// The end of the sums that norms compute in kNormLanes lanes.
#pragma once

#include <cstddef>

#include "kernels/packed_matrix.h"

namespace lockstep {

// Adds the lanes in a tree, halves first; they are undefined afterwards.
inline float sum_of_lanes(float (&lanes)[kNormLanes]) {
  for (size_t half = kNormLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

}  // namespace lockstep
