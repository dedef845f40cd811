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
  own_commands_ = TRY(allocate_commands());
  done_ = TRY(new_timeline());
  host_ = TRY(new_timeline());
  return Ok{};
}

Result<VkCommandBuffer> Gpu::new_commands() {
  if (commands_used_ == commands_.size()) commands_.push_back(TRY(allocate_commands()));
  return commands_[commands_used_++];
}

Result<VkCommandBuffer> Gpu::allocate_commands() {
  VkCommandBufferAllocateInfo commands{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  commands.commandPool = pool_;
  commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  commands.commandBufferCount = 1;
  VkCommandBuffer made = VK_NULL_HANDLE;
  TRY_VULKAN(api_.vkAllocateCommandBuffers(device_, &commands, &made), "a command buffer");
  return made;
}

Result<VkSemaphore> Gpu::new_timeline() {
  VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  const VkSemaphoreCreateInfo create{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                     .pNext = &type};
  VkSemaphore made = VK_NULL_HANDLE;
  TRY_VULKAN(api_.vkCreateSemaphore(device_, &create, nullptr, &made), "a semaphore");
  return made;
}

VkPipeline Gpu::find(const KernelVariant& variant) const {
  const auto found =
      std::find_if(pipelines_.begin(), pipelines_.end(),
                   [&](const MadePipeline& made) { return made.variant == variant; });
  return found == pipelines_.end() ? VK_NULL_HANDLE : found->made;
}

Status Gpu::make_pipeline(const KernelVariant& variant) {
  if (find(variant) != VK_NULL_HANDLE) return Ok{};
  const uint32_t fma = variant.kernel == options_.wrong ? kWrongFma : fma_;
  const Specialization constants({.fma = fma, .flush = options_.flushes ? 1u : 0u}, variant);
  const VkPipelineCreateFlags flags =
      options_.shuffle_seed != 0 ? VkPipelineCreateFlags{VK_PIPELINE_CREATE_DISPATCH_BASE_BIT} : 0;
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

Status Gpu::begin_commands(VkCommandBuffer commands) {
  if (is_lost_) return Error{ErrorCode::kInternal, info_.name + " was lost"};
  const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  TRY_VULKAN(api_.vkBeginCommandBuffer(commands, &begin), "recording commands");
  recording_ = commands;
  barrier();
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
  api_.vkCmdPipelineBarrier(recording_, kStages, kStages, 0, 1, &all, 0, nullptr, 0, nullptr);
}

Status Gpu::end_commands() {
  barrier();
  TRY_VULKAN(api_.vkEndCommandBuffer(recording_), "recording commands");
  return Ok{};
}

VkPipeline Gpu::bind(const KernelVariant& variant, VkPipeline bound) {
  VkPipeline pipeline = find(variant);
  LOCKSTEP_CHECK(pipeline != VK_NULL_HANDLE);
  if (pipeline != bound) {
    api_.vkCmdBindPipeline(recording_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  }
  return pipeline;
}

void Gpu::push(Address params) {
  api_.vkCmdPushConstants(recording_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof params,
                          &params);
}

void Gpu::play(std::span<const Dispatch> dispatches, Address params) {
  VkPipeline bound = VK_NULL_HANDLE;
  for (const Dispatch& dispatch : dispatches) {
    if (dispatch.waits && !options_.omits_barriers) barrier();
    bound = bind(dispatch.variant, bound);
    push(params);
    api_.vkCmdDispatch(recording_, dispatch.groups[0], dispatch.groups[1], 1);
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
  std::mt19937 random(options_.shuffle_seed);
  std::shuffle(all.begin(), all.end(), random);
  VkPipeline bound = VK_NULL_HANDLE;
  for (const Workgroup& workgroup : all) {
    bound = bind(dispatches[workgroup.dispatch].variant, bound);
    push(params + workgroup.dispatch * kParamBytesMax);
    api_.vkCmdDispatchBase(recording_, workgroup.x, workgroup.y, 0, 1, 1, 1);
  }
}

Status Gpu::record(VkCommandBuffer commands, std::span<const Dispatch> dispatches, Address params) {
  TRY(begin_commands(commands));
  if (options_.shuffle_seed == 0) {
    play(dispatches, params);
    return end_commands();
  }
  for (size_t begin = 0, end = 0; begin < dispatches.size(); begin = end) {
    end = begin + 1;
    while (end < dispatches.size() && (options_.omits_barriers || !dispatches[end].waits)) ++end;
    barrier();
    play_shuffled(dispatches.subspan(begin, end - begin), params + begin * kParamBytesMax);
  }
  return end_commands();
}

Status Gpu::submit(std::span<const Part> parts) {
  if (is_lost_) return Error{ErrorCode::kInternal, info_.name + " was lost"};
  LOCKSTEP_CHECK(!is_running());
  constexpr VkPipelineStageFlags kAll = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  submissions_.assign(parts.size(), {});
  submits_.assign(parts.size(), {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO});
  for (size_t i = 0; i < parts.size(); ++i) {
    Submission& submission = submissions_[i];
    submission.values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    VkSubmitInfo& submit = submits_[i];
    submit.pNext = &submission.values;
    if (parts[i].awaits_host) {
      submission.waits_for = ++awaited_;
      submission.values.waitSemaphoreValueCount = submit.waitSemaphoreCount = 1;
      submission.values.pWaitSemaphoreValues = &submission.waits_for;
      submit.pWaitSemaphores = &host_;
      submit.pWaitDstStageMask = &kAll;
    }
    submission.signals = ++submitted_;
    submission.values.signalSemaphoreValueCount = submit.signalSemaphoreCount = 1;
    submission.values.pSignalSemaphoreValues = &submission.signals;
    submit.pSignalSemaphores = &done_;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &parts[i].commands;
  }
  const VkResult result = api_.vkQueueSubmit(queue_, static_cast<uint32_t>(submits_.size()),
                                             submits_.data(), VK_NULL_HANDLE);
  if (result != VK_SUCCESS) return lost(error_of(result, "the GPU's work"));
  return Ok{};
}

Status Gpu::release() {
  LOCKSTEP_CHECK(released_ < awaited_);
  return release_to(released_ + 1);
}

Status Gpu::release_all() {
  return released_ == awaited_ ? Ok{} : release_to(awaited_);
}

Status Gpu::release_to(uint64_t value) {
  released_ = value;
  VkSemaphoreSignalInfo signal{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
  signal.semaphore = host_;
  signal.value = value;
  const VkResult result = api_.vkSignalSemaphore(device_, &signal);
  if (result != VK_SUCCESS) return lost(error_of(result, "the GPU's work"));
  return Ok{};
}

Status Gpu::finish_part(std::chrono::nanoseconds look, const std::function<void()>& meanwhile) {
  using Clock = std::chrono::steady_clock;
  LOCKSTEP_CHECK(is_running());
  const uint64_t part = finished_ + 1;
  VkSemaphoreWaitInfo wait{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  wait.semaphoreCount = 1;
  wait.pSemaphores = &done_;
  wait.pValues = &part;
  const Clock::time_point deadline = Clock::now() + options_.answer_limit;
  look = std::min<std::chrono::nanoseconds>(look, options_.answer_limit);
  for (;;) {
    const VkResult result = api_.vkWaitSemaphores(device_, &wait, nanoseconds(look));
    if (result == VK_SUCCESS) break;
    if (result != VK_TIMEOUT) return lost(error_of(result, "the GPU's work"));
    if (Clock::now() > deadline) {
      return lost({ErrorCode::kInternal, info_.name + " did not finish its work in time"});
    }
    if (meanwhile) meanwhile();
  }
  finished_ = part;
  return Ok{};
}

Status Gpu::finish() {
  while (is_running() && !is_lost_) TRY(finish_part());
  return Ok{};
}

Status Gpu::submit(std::span<const Dispatch> dispatches, Address params) {
  TRY(record(own_commands_, dispatches, params));
  const Part part{own_commands_, false};
  return submit({&part, 1});
}

Status Gpu::submit_copy(const GpuMemory& from, size_t from_offset, const GpuMemory& to,
                        size_t to_offset, size_t bytes) {
  TRY(begin_commands(own_commands_));
  const VkBufferCopy region{from_offset, to_offset, bytes};
  api_.vkCmdCopyBuffer(recording_, from.buffer, to.buffer, 1, &region);
  TRY(end_commands());
  const Part part{own_commands_, false};
  return submit({&part, 1});
}

}  // namespace lockstep::gpu
