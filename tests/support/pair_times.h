// Whether the times of a pair of ranks can be those of a measurement: they are there, percentiles
// are in order, and no message took a second. For tests.
#pragma once

#include "collective/group/probe.h"

namespace lockstep {

inline bool are_percentiles(double p50_us, double p99_us) {
  return p50_us > 0 && p50_us <= p99_us && p50_us < 1e6;
}

// As a group measures its links when it forms: without 16 KiB.
inline bool is_measured(const PairTimes& times) {
  return are_percentiles(times.p50_us, times.p99_us) && times.gbit_s > 0;
}

// As a probe measures them.
inline bool is_probed(const PairTimes& times) {
  return is_measured(times) && are_percentiles(times.p50_16k_us, times.p99_16k_us);
}

}  // namespace lockstep
