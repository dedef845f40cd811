// Compiles kernels for a device: what gpu_play.cc and the test of compiled kernels share.
#pragma once

#include <span>

#include "device/vulkan/api.h"
#include "device/vulkan/specialization.h"

namespace lockstep::gpu {

// The layout of all kernels: they are given the address of their parameters.
Result<VkPipelineLayout> make_pipeline_layout(const VulkanApi& api, VkDevice device);

struct PipelineRequest {
  VkPipelineLayout layout = VK_NULL_HANDLE;
  std::span<const uint32_t> code;
  const Specialization& constants;
  VkPipelineCreateFlags flags = 0;
};
Result<VkPipeline> compile_pipeline(const VulkanApi& api, VkDevice device,
                                    const PipelineRequest& request);

}  // namespace lockstep::gpu
