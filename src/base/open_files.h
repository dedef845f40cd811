// How many descriptors this process may have open at once: every connection is one. Systems start
// programs with a low limit that each program may raise to a higher one by itself.
#pragma once

#include <cstdint>

namespace lockstep {

// Raises the limit as far as this process may, but not beyond what a node ever needs. Returns how
// many it may have open now. Processes that are started afterwards have the same limit.
uint64_t raise_open_files_max();

}  // namespace lockstep
