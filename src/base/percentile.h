// One meaning of a percentile for all that is measured: an element that was measured, never a mean
// of two. Used by probes and benchmarks. Pure.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep {

// Of ascending values the one that `percent` % of the way lead to: 0 the least, 50 the median (the
// lower one of two), 100 the largest. 0 where there are none.
inline double at_percent(std::span<const double> ascending, size_t percent) {
  return ascending.empty() ? 0 : ascending[(ascending.size() - 1) * percent / 100];
}

}  // namespace lockstep
