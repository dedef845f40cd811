// How fast memory can be read: the bound of decoding. Used by `lockstep bench`, and by nodes and
// plans for their machine.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace lockstep {

// No cache has as much.
inline constexpr size_t kReadProbeBytes = size_t{1} << 30;
// With fewer, the probe would measure little but its own start.
inline constexpr size_t kReadProbeBytesMin = size_t{8} << 20;

// GB/s of reading so many bytes, rounded down to MiB, once with `threads` threads, the best of
// `rounds`. kExhausted without the memory, kInvalidArgument below kReadProbeBytesMin.
Result<double> probe_read_gb_s(int threads, int rounds, size_t bytes = kReadProbeBytes);

}  // namespace lockstep
