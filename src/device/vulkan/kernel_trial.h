// The second part of the self-test of a GPU (device/vulkan/self_test.h has the first): small
// products of each packed format, attention, a norm, the storing of keys and values, and a
// recurrent layer must have the bits of the processor's scalar kernels.
#pragma once

#include <optional>
#include <string>

#include "device/vulkan/vulkan_device.h"

namespace lockstep::gpu {

// The first kernel with other bits, for people: "products of 4-bit weights". The device's memory
// holds some garbage afterwards.
Result<std::optional<std::string>> find_wrong_kernel(VulkanDevice& device);

}  // namespace lockstep::gpu
