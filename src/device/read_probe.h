// How fast memory can be read: the bound of decoding. Used by `lockstep bench`.
#pragma once

#include "base/result.h"

namespace lockstep {

// GB/s of reading 1 GiB once with `threads` threads, the best of `rounds`. kExhausted without the
// memory.
Result<double> probe_read_gb_s(int threads, int rounds);

}  // namespace lockstep
