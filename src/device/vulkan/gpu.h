// Gpu: one GPU through Vulkan 1.2, with one queue for compute: memory, pipelines, and the playing
// of dispatches. Used by vulkan_device.h. One thread; several Gpus may exist, also of one device.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/gpu/plan.h"
#include "device/vulkan/api.h"
#include "device/vulkan/kernel_code.h"

namespace lockstep::gpu {

struct GpuInfo {
  std::string name;         // "AMD Radeon RX 7900 XTX (RADV NAVI31)"
  std::string driver_name;  // "radv"
  std::string driver;       // with its version: "radv, Mesa 26.1.2"
  bool is_software = false;
  bool has_own_memory = false;  // apart from the machine's: a card
  uint64_t memory_bytes = 0;    // its largest heap
  uint64_t free_bytes = 0;      // of that heap, if the driver says so; else all of it
  // A workgroup has at most this.
  uint32_t invocations = 0;
  uint32_t shared_bytes = 0;
};

// The refusal of a GPU: it computes other bits than processors do, `where`.
Error other_bits(const GpuInfo& gpu, std::string_view where);

// In Vulkan's order. kUnsupported where there is no Vulkan; may be empty.
Result<std::vector<GpuInfo>> list_gpus();

enum class MemoryKind {
  kDevice,  // fast for the device; the host may see it or not
  kHost,    // the host sees it, and reads it fast
};

// Memory of the device. The Gpu owns it.
struct GpuMemory {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  std::byte* mapped = nullptr;  // for the host; nullptr: it cannot see it
  Address address = 0;
  size_t bytes = 0;
};

class Gpu {
 public:
  // A GPU that does not finish its work within this time counts as lost.
  static constexpr std::chrono::nanoseconds kAnswerLimit = std::chrono::seconds(60);

  // `index` as in list_gpus().
  struct Options {
    int index = 0;
    bool tries_kernels = true;  // a VulkanDevice compares them with the processor's, and refuses
    // For tests, as are those that follow. It counts from the end of open().
    std::chrono::nanoseconds answer_limit = kAnswerLimit;
    bool hides_memory = false;      // kDevice memory is never mapped
    bool flushes = false;           // kernels flush subnormal numbers
    std::optional<Kernel> wrong{};  // this kernel's fma() rounds twice
    bool avoids_dot = false;        // dot products of bytes are made by multiplications
    uint32_t shuffle_seed = 0;      // not 0: workgroups between two barriers play in any order
    bool omits_barriers = false;    // kernels do not wait for each other: tests must then fail
  };
  static Result<std::unique_ptr<Gpu>> open(const Options& options);
  // Its kernels are those that a Gpu with these options compiles (spare_gpus.h).
  bool has_kernels_of(const Options& options) const;
  // As if it were new, with these options and the kernels that it has.
  void reopen(const Options& options);
  // It has nothing to do and is not lost.
  bool is_usable() const;
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const GpuInfo& info() const { return info_; }

  // kExhausted if there is not enough. Contents are undefined.
  Result<const GpuMemory*> allocate(size_t bytes, MemoryKind kind);
  // All of it; the GPU has nothing to do.
  void free_memory();
  // Compiles it if it is new.
  Status make_pipeline(const KernelVariant& variant);

  // Whether a VulkanDevice has compared its kernels with the processor's, with this kind of plan.
  bool is_tried(bool specialises) const { return is_tried_[specialises ? 1 : 0]; }
  void set_tried(bool specialises) { is_tried_[specialises ? 1 : 0] = true; }

  // Commands that can be submitted as often as one likes. They live until reopen(), and must not
  // be recorded again while they run.
  Result<VkCommandBuffer> new_commands();
  // The host has put these dispatches' parameters at `params`, each at a multiple of
  // kParamBytesMax, where they stay.
  Status record(VkCommandBuffer commands, std::span<const Dispatch> dispatches, Address params);
  struct Part {
    VkCommandBuffer commands;
    bool awaits_host;  // until release()
  };
  // Parts that run one after the other. Returns at once; finish_part() waits.
  Status submit(std::span<const Part> parts);
  // Waits for the next one of the submitted parts, and calls `meanwhile`, if any, between looks of
  // `look`. kInternal if the GPU is lost or does not finish in time; it can then do nothing more.
  Status finish_part(std::chrono::nanoseconds look = kLook,
                     const std::function<void()>& meanwhile = nullptr);
  // Lets the next one of the parts begin that await the host; all of them.
  Status release();
  Status release_all();
  Status finish();  // all parts

  // As one part.
  Status submit(std::span<const Dispatch> dispatches, Address params);
  Status submit_copy(const GpuMemory& from, size_t from_offset, const GpuMemory& to,
                     size_t to_offset, size_t bytes);

  static constexpr std::chrono::milliseconds kLook{50};

 private:
  struct MadePipeline {
    KernelVariant variant;
    VkPipeline made;
  };

  Gpu() = default;
  Status open_device(const Options& options);
  Status create_device();
  Status choose_fma();
  Status open_commands();
  Result<VkCommandBuffer> allocate_commands();
  std::optional<uint32_t> memory_type(uint32_t allowed, MemoryKind kind) const;
  void forget_pipelines();
  VkPipeline find(const KernelVariant& variant) const;
  Error lost(const Error& error);
  bool is_running() const { return finished_ < submitted_; }
  Status begin_commands(VkCommandBuffer commands);
  // These record into `recording_`.
  void barrier();
  VkPipeline bind(const KernelVariant& variant, VkPipeline bound);
  void push(Address params);
  void play(std::span<const Dispatch> dispatches, Address params);
  // Plays dispatches of which none waits for another, one workgroup at a time.
  void play_shuffled(std::span<const Dispatch> dispatches, Address params);
  Status end_commands();
  Result<VkSemaphore> new_timeline();
  Status release_to(uint64_t value);

  VulkanApi api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  GpuInfo info_;
  VkPhysicalDeviceMemoryProperties memories_{};
  KernelFeatures features_;
  Options options_;
  std::array<bool, 2> is_tried_{};
  uint32_t fma_ = 0;  // kFma of common.glsl
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer own_commands_ = VK_NULL_HANDLE;  // of copies, and of dispatches that run once
  VkCommandBuffer recording_ = VK_NULL_HANDLE;
  // Counts the parts that have run, up to `submitted_`; the host has waited for `finished_`.
  VkSemaphore done_ = VK_NULL_HANDLE;
  uint64_t submitted_ = 0;
  uint64_t finished_ = 0;
  // Counts what the host has released, up to `awaited_`.
  VkSemaphore host_ = VK_NULL_HANDLE;
  uint64_t awaited_ = 0;
  uint64_t released_ = 0;
  bool is_lost_ = false;
  // Scratch of submit(), kept so that it allocates nothing.
  struct Submission {
    uint64_t waits_for = 0;
    uint64_t signals = 0;
    VkTimelineSemaphoreSubmitInfo values{};
  };
  std::vector<Submission> submissions_;
  std::vector<VkSubmitInfo> submits_;
  std::vector<MadePipeline> pipelines_;
  std::vector<VkCommandBuffer> commands_;  // all but `own_commands_`
  size_t commands_used_ = 0;               // others are spare
  std::vector<std::unique_ptr<GpuMemory>> allocated_;
};

}  // namespace lockstep::gpu
