// Which kernel tables this machine can run, and which one is used.
#pragma once

#include <span>

#include "base/result.h"
#include "kernels/kernels.h"

namespace lockstep {

// The tables in this build that the processor can run, slowest ("scalar") first.
std::span<const KernelTable* const> available_kernels();

// The last of them, or the one named by the environment variable LOCKSTEP_ISA; kInvalidArgument,
// listing the possible names, if that is none of them.
Result<const KernelTable*> choose_kernels();

}  // namespace lockstep
