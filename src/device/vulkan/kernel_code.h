// The compiled kernels of device/shaders, as SPIR-V. The build makes each for devices with float64
// and for those without, and products also for devices with dot products of bytes.
#pragma once

#include <cstdint>
#include <span>

#include "device/gpu/plan.h"

namespace lockstep::gpu {

// Features of a device that kernels use where they exist.
struct KernelFeatures {
  bool float64 = false;
  bool dot = false;  // VK_KHR_shader_integer_dot_product
};

std::span<const uint32_t> kernel_code(Kernel kernel, const KernelFeatures& has);

}  // namespace lockstep::gpu
