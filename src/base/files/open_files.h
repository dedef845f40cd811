// How many descriptors this process may have open: every connection is one. Systems start programs
// with a low limit that a program may raise itself.
#pragma once

#include <cstdint>

namespace lockstep {

// Raises the limit as far as allowed, but not beyond what a node ever needs. Returns the new limit.
// Processes started afterwards inherit it.
uint64_t raise_open_files_max();

}  // namespace lockstep
