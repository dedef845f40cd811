// An instance of Vulkan with the devices that it finds. Used by gpu.cc; one thread.
#pragma once

#include <vector>

#include "device/vulkan/api.h"

namespace lockstep::gpu {

struct Instance {
  VulkanApi api;
  VkInstance instance = VK_NULL_HANDLE;  // to be destroyed by its user
  std::vector<VkPhysicalDevice> devices;
};

// kUnsupported where there is no Vulkan 1.2. Devices may lack parts of Vulkan (MoltenVK's do).
Result<Instance> open_instance();

bool has_extension(const VulkanApi& api, VkPhysicalDevice physical, const char* name);
// VK_KHR_portability_subset, which a header of beta extensions names.
inline constexpr const char* kPortabilitySubset = "VK_KHR_portability_subset";

}  // namespace lockstep::gpu
