#include "device/vulkan/pipeline.h"

namespace lockstep::gpu {

Result<VkPipelineLayout> make_pipeline_layout(const VulkanApi& api, VkDevice device) {
  VkPushConstantRange pushed{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Address)};
  VkPipelineLayoutCreateInfo create{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  create.pushConstantRangeCount = 1;
  create.pPushConstantRanges = &pushed;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  TRY_VULKAN(api.vkCreatePipelineLayout(device, &create, nullptr, &layout), "a layout");
  return layout;
}

Result<VkPipeline> compile_pipeline(const VulkanApi& api, VkDevice device,
                                    const PipelineRequest& request) {
  VkShaderModuleCreateInfo module_info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = request.code.size_bytes();
  module_info.pCode = request.code.data();
  VkShaderModule module = VK_NULL_HANDLE;
  TRY_VULKAN(api.vkCreateShaderModule(device, &module_info, nullptr, &module), "a kernel");
  VkComputePipelineCreateInfo create{.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  create.flags = request.flags;
  create.stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = module;
  create.stage.pName = "main";
  create.stage.pSpecializationInfo = &request.constants.info();
  create.layout = request.layout;
  VkPipeline made = VK_NULL_HANDLE;
  const VkResult result =
      api.vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &create, nullptr, &made);
  api.vkDestroyShaderModule(device, module, nullptr);
  TRY_VULKAN(result, "compiling a kernel");
  return made;
}

}  // namespace lockstep::gpu
