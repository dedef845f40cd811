// Which kernel tables this machine can run, and which one is used.
#pragma once

#include <span>

#include "base/result.h"
#include "kernels/kernels.h"

namespace lockstep {

// The tables that this build has and this processor can run, slowest ("scalar") first.
std::span<const KernelTable* const> available_kernels();

// The last of them, or the one that the environment variable LOCKSTEP_ISA names; kInvalidArgument
// with the possible names where it names none of them.
Result<const KernelTable*> choose_kernels();

}  // namespace lockstep
