// The functions of Vulkan that are used, found at run time: the program runs where no Vulkan is
// installed. The names are Vulkan's (https://registry.khronos.org/vulkan).
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "base/result.h"

namespace lockstep::gpu {

#define LOCKSTEP_VULKAN_INSTANCE_FUNCTIONS(f)                                                 \
  f(vkDestroyInstance) f(vkEnumeratePhysicalDevices) f(vkGetPhysicalDeviceProperties2)        \
      f(vkGetPhysicalDeviceFeatures2) f(vkGetPhysicalDeviceMemoryProperties)                  \
          f(vkGetPhysicalDeviceMemoryProperties2) f(vkGetPhysicalDeviceQueueFamilyProperties) \
              f(vkEnumerateDeviceExtensionProperties) f(vkCreateDevice) f(vkGetDeviceProcAddr)

#define LOCKSTEP_VULKAN_DEVICE_FUNCTIONS(f)                                                       \
  f(vkDestroyDevice) f(vkGetDeviceQueue) f(vkDeviceWaitIdle) f(vkAllocateMemory) f(vkFreeMemory)  \
      f(vkMapMemory) f(vkCreateBuffer) f(vkDestroyBuffer) f(vkGetBufferMemoryRequirements)        \
          f(vkBindBufferMemory) f(vkGetBufferDeviceAddress) f(vkCreateShaderModule)               \
              f(vkDestroyShaderModule) f(vkCreatePipelineLayout) f(vkDestroyPipelineLayout)       \
                  f(vkCreateComputePipelines) f(vkDestroyPipeline) f(vkCreateCommandPool)         \
                      f(vkDestroyCommandPool) f(vkAllocateCommandBuffers) f(vkBeginCommandBuffer) \
                          f(vkEndCommandBuffer) f(vkCmdBindPipeline) f(vkCmdPushConstants)        \
                              f(vkCmdDispatch) f(vkCmdDispatchBase) f(vkCmdPipelineBarrier)       \
                                  f(vkCmdCopyBuffer) f(vkCreateSemaphore) f(vkDestroySemaphore)   \
                                      f(vkWaitSemaphores) f(vkSignalSemaphore) f(vkQueueSubmit)

#define LOCKSTEP_VULKAN_MEMBER(name) PFN_##name name = nullptr;

struct VulkanApi {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
  PFN_vkCreateInstance vkCreateInstance = nullptr;
  PFN_vkEnumerateInstanceExtensionProperties vkEnumerateInstanceExtensionProperties = nullptr;
  LOCKSTEP_VULKAN_INSTANCE_FUNCTIONS(LOCKSTEP_VULKAN_MEMBER)
  LOCKSTEP_VULKAN_DEVICE_FUNCTIONS(LOCKSTEP_VULKAN_MEMBER)

  // kUnsupported if this system has no Vulkan loader, or too old a one.
  static Result<VulkanApi> open();
  Status find_instance_functions(VkInstance instance);
  Status find_device_functions(VkDevice device);
};

#undef LOCKSTEP_VULKAN_MEMBER

// "no memory is left on the device (VK_ERROR_OUT_OF_DEVICE_MEMORY)" and so on.
std::string vulkan_error(VkResult result);
// kExhausted for missing memory, else kInternal: after it the rank's process ends.
Error error_of(VkResult result, const char* what);

// Returns the Error of a call that failed.
#define TRY_VULKAN(call, what)                                               \
  do {                                                                       \
    const VkResult vulkan_result_ = (call);                                  \
    if (vulkan_result_ != VK_SUCCESS) return error_of(vulkan_result_, what); \
  } while (0)

}  // namespace lockstep::gpu
