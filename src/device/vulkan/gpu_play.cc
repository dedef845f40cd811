// Pipelines of a GPU and the playing of dispatches.
#include <algorithm>
#include <random>
#include <vector>

#include "base/check.h"
#include "device/vulkan/gpu.h"
#include "device/vulkan/pipeline.h"

namespace lockstep::gpu {
namespace {

constexpr uint32_t kWrongFma = 2;  // kFma of common.glsl

uint64_t nanoseconds(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>(time.count());
}

}  // namespace

Status Gpu::open_commands() {
  layout_ = TRY(make_pipeline_layout(api_, device_));
  VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = family_;
  TRY_VULKAN(api_.vkCreateCommandPool(device_, &pool, nullptr, &pool_), "a command pool");
  VkCommandBufferAllocateInfo commands{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  commands.commandPool = pool_;
  commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  commands.commandBufferCount = 1;
  TRY_VULKAN(api_.vkAllocateCommandBuffers(device_, &commands, &commands_), "a command buffer");
  VkFenceCreateInfo fence{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  TRY_VULKAN(api_.vkCreateFence(device_, &fence, nullptr, &fence_), "a fence");
  return Ok{};
}

VkPipeline Gpu::find(const KernelVariant& variant) const {
  const auto found =
      std::find_if(pipelines_.begin(), pipelines_.end(),
                   [&](const MadePipeline& made) { return made.variant == variant; });
  return found == pipelines_.end() ? VK_NULL_HANDLE : found->made;
}

Status Gpu::make_pipeline(const KernelVariant& variant) {
  if (find(variant) != VK_NULL_HANDLE) return Ok{};
  const uint32_t fma = variant.kernel == wrong_ ? kWrongFma : fma_;
  const Specialization constants({.fma = fma, .flush = flushes_ ? 1u : 0u}, variant);
  const VkPipelineCreateFlags flags =
      shuffle_seed_ != 0 ? VkPipelineCreateFlags{VK_PIPELINE_CREATE_DISPATCH_BASE_BIT} : 0;
  VkPipeline made = TRY(compile_pipeline(api_, device_,
                                         {.layout = layout_,
                                          .code = kernel_code(variant.kernel, features_),
                                          .constants = constants,
                                          .flags = flags}));
  pipelines_.push_back({variant, made});
  return Ok{};
}

Error Gpu::lost(const Error& error) {
  is_lost_ = true;
  return error;
}

Status Gpu::begin_commands() {
  if (is_lost_) return Error{ErrorCode::kInternal, info_.name + " was lost"};
  LOCKSTEP_CHECK(!is_running_);
  VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  TRY_VULKAN(api_.vkBeginCommandBuffer(commands_, &begin), "recording commands");
  return Ok{};
}

// Everything before is seen by everything after, on the device and by the host.
void Gpu::barrier() {
  VkMemoryBarrier all{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  all.srcAccessMask =
      VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT;
  all.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                      VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT |
                      VK_ACCESS_HOST_READ_BIT;
  constexpr VkPipelineStageFlags kStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                           VK_PIPELINE_STAGE_TRANSFER_BIT |
                                           VK_PIPELINE_STAGE_HOST_BIT;
  api_.vkCmdPipelineBarrier(commands_, kStages, kStages, 0, 1, &all, 0, nullptr, 0, nullptr);
}

Status Gpu::submit_commands() {
  barrier();
  TRY_VULKAN(api_.vkEndCommandBuffer(commands_), "recording commands");
  VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands_;
  TRY_VULKAN(api_.vkResetFences(device_, 1, &fence_), "a fence");
  const VkResult result = api_.vkQueueSubmit(queue_, 1, &submit, fence_);
  if (result != VK_SUCCESS) return lost(error_of(result, "the GPU's work"));
  is_running_ = true;
  return Ok{};
}

VkPipeline Gpu::bind(const KernelVariant& variant, VkPipeline bound) {
  VkPipeline pipeline = find(variant);
  LOCKSTEP_CHECK(pipeline != VK_NULL_HANDLE);
  if (pipeline != bound) {
    api_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  }
  return pipeline;
}

void Gpu::push(Address params) {
  api_.vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof params,
                          &params);
}

void Gpu::play(std::span<const Dispatch> dispatches, Address params) {
  VkPipeline bound = VK_NULL_HANDLE;
  for (const Dispatch& dispatch : dispatches) {
    if (dispatch.waits && !omits_barriers_) barrier();
    bound = bind(dispatch.variant, bound);
    push(params);
    api_.vkCmdDispatch(commands_, dispatch.groups[0], dispatch.groups[1], 1);
    params += kParamBytesMax;
  }
}

void Gpu::play_shuffled(std::span<const Dispatch> dispatches, Address params) {
  struct Workgroup {
    size_t dispatch;
    uint32_t x;
    uint32_t y;
  };
  std::vector<Workgroup> all;
  for (size_t i = 0; i < dispatches.size(); ++i) {
    for (uint32_t y = 0; y < dispatches[i].groups[1]; ++y) {
      for (uint32_t x = 0; x < dispatches[i].groups[0]; ++x) all.push_back({i, x, y});
    }
  }
  std::mt19937 random(shuffle_seed_);
  std::shuffle(all.begin(), all.end(), random);
  VkPipeline bound = VK_NULL_HANDLE;
  for (const Workgroup& workgroup : all) {
    bound = bind(dispatches[workgroup.dispatch].variant, bound);
    push(params + workgroup.dispatch * kParamBytesMax);
    api_.vkCmdDispatchBase(commands_, workgroup.x, workgroup.y, 0, 1, 1, 1);
  }
}

Status Gpu::submit(std::span<const Dispatch> dispatches, Address params) {
  TRY(begin_commands());
  if (shuffle_seed_ == 0) {
    play(dispatches, params);
    return submit_commands();
  }
  for (size_t begin = 0, end = 0; begin < dispatches.size(); begin = end) {
    end = begin + 1;
    while (end < dispatches.size() && (omits_barriers_ || !dispatches[end].waits)) ++end;
    barrier();
    play_shuffled(dispatches.subspan(begin, end - begin), params + begin * kParamBytesMax);
  }
  return submit_commands();
}

Status Gpu::submit_copy(const GpuMemory& from, size_t from_offset, const GpuMemory& to,
                        size_t to_offset, size_t bytes) {
  TRY(begin_commands());
  barrier();
  const VkBufferCopy region{from_offset, to_offset, bytes};
  api_.vkCmdCopyBuffer(commands_, from.buffer, to.buffer, 1, &region);
  return submit_commands();
}

Status Gpu::finish(std::chrono::nanoseconds look, const std::function<void()>& meanwhile) {
  using Clock = std::chrono::steady_clock;
  if (!is_running_) return Ok{};
  const Clock::time_point deadline = Clock::now() + answer_limit_;
  look = std::min<std::chrono::nanoseconds>(look, answer_limit_);
  for (;;) {
    const VkResult result = api_.vkWaitForFences(device_, 1, &fence_, VK_TRUE, nanoseconds(look));
    if (result == VK_SUCCESS) break;
    if (result != VK_TIMEOUT) return lost(error_of(result, "the GPU's work"));
    if (Clock::now() > deadline) {
      return lost({ErrorCode::kInternal, info_.name + " did not finish its work in time"});
    }
    if (meanwhile) meanwhile();
  }
  is_running_ = false;
  return Ok{};
}

}  // namespace lockstep::gpu
