// Measures how fast memory can be read, which limits decoding. Used by `lockstep bench`, and by
// nodes and plans for their machine.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace lockstep {

// Larger than any cache.
inline constexpr size_t kReadProbeBytes = size_t{1} << 30;
// With fewer bytes the probe would mostly measure its own start.
inline constexpr size_t kReadProbeBytesMin = size_t{8} << 20;

// GB/s of reading `bytes`, rounded down to MiB, once with `threads` threads; the best of `rounds`.
// kExhausted without enough memory, kInvalidArgument below kReadProbeBytesMin.
Result<double> probe_read_gb_s(int threads, int rounds, size_t bytes = kReadProbeBytes);

}  // namespace lockstep
