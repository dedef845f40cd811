// The self-test of a GPU, before it is used: its arithmetic must have the bits of the processor's.
#pragma once

#include "device/vulkan/gpu.h"

namespace lockstep::gpu {

// Compares products, quotients, roots and exponentials of some thousand numbers.
Result<bool> has_exact_arithmetic(Gpu& gpu);

}  // namespace lockstep::gpu
