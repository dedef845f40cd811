// The one definition of a percentile for all measurements: a measured element, never a mean of two.
// Used by probes and benchmarks. Pure.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep {

// The value at `percent` % of the ascending values: 0 the smallest, 50 the median (the lower one of
// two), 100 the largest. 0 if there are none.
inline double at_percent(std::span<const double> ascending, size_t percent) {
  return ascending.empty() ? 0 : ascending[(ascending.size() - 1) * percent / 100];
}

}  // namespace lockstep
