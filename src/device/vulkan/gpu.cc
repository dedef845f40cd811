// Opening of a GPU, and its memory. gpu_play.cc has pipelines and dispatches.
#include "device/vulkan/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "device/vulkan/instance.h"
#include "device/vulkan/self_test.h"

namespace lockstep::gpu {
namespace {

struct Heap {
  uint64_t bytes = 0;
  uint64_t free_bytes = 0;
};

// The largest heap that is the device's. Other programs may use some of it, which not every driver
// says.
Heap largest_heap(const VulkanApi& api, VkPhysicalDevice physical) {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  const bool has_budget = has_extension(api, physical, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  VkPhysicalDeviceMemoryProperties2 memories{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
      .pNext = has_budget ? &budget : nullptr};
  api.vkGetPhysicalDeviceMemoryProperties2(physical, &memories);
  Heap largest;
  for (uint32_t i = 0; i < memories.memoryProperties.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memories.memoryProperties.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0 || heap.size <= largest.bytes) continue;
    largest = {heap.size, has_budget ? std::min(heap.size, budget.heapBudget[i]) : heap.size};
  }
  return largest;
}

GpuInfo info_of(const VulkanApi& api, VkPhysicalDevice physical) {
  VkPhysicalDeviceDriverProperties driver{.sType =
                                              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                         .pNext = &driver};
  api.vkGetPhysicalDeviceProperties2(physical, &properties);
  const VkPhysicalDeviceType type = properties.properties.deviceType;
  const Heap heap = largest_heap(api, physical);
  return {.name = properties.properties.deviceName,
          .driver_name = driver.driverName,
          .driver = fmt::format("{}, {}", driver.driverName, driver.driverInfo),
          .is_software = type == VK_PHYSICAL_DEVICE_TYPE_CPU,
          .has_own_memory = type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
          .memory_bytes = heap.bytes,
          .free_bytes = heap.free_bytes,
          .invocations = properties.properties.limits.maxComputeWorkGroupInvocations,
          .shared_bytes = properties.properties.limits.maxComputeSharedMemorySize};
}

std::optional<uint32_t> compute_family(const VulkanApi& api, VkPhysicalDevice physical) {
  uint32_t count = 0;
  api.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) return i;
  }
  return std::nullopt;
}

bool has_dot(const VulkanApi& api, VkPhysicalDevice physical) {
  if (!has_extension(api, physical, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) return false;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  VkPhysicalDeviceFeatures2 has{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                .pNext = &dot};
  api.vkGetPhysicalDeviceFeatures2(physical, &has);
  return dot.shaderIntegerDotProduct == VK_TRUE;
}

}  // namespace

Error other_bits(const GpuInfo& gpu, std::string_view where) {
  return {ErrorCode::kUnsupported,
          fmt::format("{} ({}) computes other bits than processors do {}, so lockstep does not use "
                      "it; try a newer driver",
                      gpu.name, gpu.driver, where)};
}

Result<std::vector<GpuInfo>> list_gpus() {
  const Instance opened = TRY(open_instance());
  std::vector<GpuInfo> gpus;
  for (VkPhysicalDevice physical : opened.devices) gpus.push_back(info_of(opened.api, physical));
  opened.api.vkDestroyInstance(opened.instance, nullptr);
  return gpus;
}

Result<std::unique_ptr<Gpu>> Gpu::open(const Options& options) {
  Instance opened = TRY(open_instance());
  std::unique_ptr<Gpu> gpu(new Gpu);
  gpu->api_ = opened.api;
  gpu->instance_ = opened.instance;
  const auto count = static_cast<int>(opened.devices.size());
  if (count == 0) {
    return Error{ErrorCode::kUnsupported, "Vulkan finds no GPU on this machine"};
  }
  if (options.index < 0 || options.index >= count) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("there is no GPU {}; this machine has {}, numbered from 0",
                             options.index, count)};
  }
  gpu->physical_ = opened.devices[static_cast<size_t>(options.index)];
  TRY(gpu->open_device(options));
  TRY(gpu->open_commands());
  TRY(gpu->choose_fma());
  gpu->options_.answer_limit = options.answer_limit;
  return gpu;
}

bool Gpu::has_kernels_of(const Options& options) const {
  return options.index == options_.index && options.flushes == options_.flushes &&
         options.wrong == options_.wrong && options.avoids_dot == options_.avoids_dot &&
         (options.shuffle_seed != 0) == (options_.shuffle_seed != 0);
}

bool Gpu::is_usable() const {
  return !is_lost_ && !is_running() && api_.vkDeviceWaitIdle(device_) == VK_SUCCESS;
}

void Gpu::reopen(const Options& options) {
  LOCKSTEP_CHECK(has_kernels_of(options) && !is_running() && allocated_.empty());
  options_ = options;
  info_ = info_of(api_, physical_);
  commands_used_ = 0;
}

Status Gpu::open_device(const Options& options) {
  info_ = info_of(api_, physical_);
  options_ = options;
  options_.answer_limit = kAnswerLimit;  // until open() is done
  api_.vkGetPhysicalDeviceMemoryProperties(physical_, &memories_);
  const auto family = compute_family(api_, physical_);
  if (!family) {
    return Error{ErrorCode::kUnsupported, fmt::format("{} has no queue for compute", info_.name)};
  }
  family_ = *family;

  VkPhysicalDeviceVulkan12Features has12{.sType =
                                             VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan11Features has11{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &has12};
  VkPhysicalDeviceFeatures2 has{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                .pNext = &has11};
  api_.vkGetPhysicalDeviceFeatures2(physical_, &has);
  if (has12.bufferDeviceAddress == VK_FALSE || has11.storageBuffer16BitAccess == VK_FALSE ||
      has12.storageBuffer8BitAccess == VK_FALSE) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} lacks buffer device addresses or small storage types, which "
                             "lockstep needs; update its driver",
                             info_.name)};
  }
  features_ = {.float64 = has.features.shaderFloat64 == VK_TRUE,
               .dot = !options.avoids_dot && has_dot(api_, physical_)};
  return create_device();
}

Status Gpu::create_device() {
  VkPhysicalDeviceVulkan12Features wanted12{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  wanted12.bufferDeviceAddress = VK_TRUE;
  wanted12.storageBuffer8BitAccess = VK_TRUE;
  wanted12.timelineSemaphore = VK_TRUE;  // every Vulkan 1.2 has it
  VkPhysicalDeviceVulkan11Features wanted11{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &wanted12};
  wanted11.storageBuffer16BitAccess = VK_TRUE;
  VkPhysicalDeviceFeatures wanted{};
  wanted.shaderFloat64 = features_.float64 ? VK_TRUE : VK_FALSE;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  dot.shaderIntegerDotProduct = VK_TRUE;
  std::vector<const char*> extensions;
  // A device that lacks parts of Vulkan, as Apple's do, wants its users to know.
  if (has_extension(api_, physical_, kPortabilitySubset)) extensions.push_back(kPortabilitySubset);
  if (features_.dot) {
    extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    wanted12.pNext = &dot;
  }
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo create{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &wanted11};
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.pEnabledFeatures = &wanted;
  create.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  TRY_VULKAN(api_.vkCreateDevice(physical_, &create, nullptr, &device_), "opening the GPU");
  TRY(api_.find_device_functions(device_));
  api_.vkGetDeviceQueue(device_, family_, 0, &queue_);
  return Ok{};
}

// A device whose own fma() rounds twice must have float64, from which the right result is made.
Status Gpu::choose_fma() {
  for (const uint32_t fma : {0u, 1u}) {
    if (fma == 1 && !features_.float64) break;
    fma_ = fma;
    forget_pipelines();
    if (TRY(has_exact_arithmetic(*this))) return Ok{};
  }
  return other_bits(info_, "in sums, products, quotients and roots");
}

// Nothing may be freed that a GPU still uses, and one that is lost cannot be waited for: its memory
// goes with the process, which ends.
Gpu::~Gpu() {
  if (is_lost_ && is_running()) return;
  if (device_ != VK_NULL_HANDLE && api_.vkDeviceWaitIdle != nullptr) {
    if (is_running() && release_all().ok()) api_.vkDeviceWaitIdle(device_);
    forget_pipelines();
    free_memory();
    for (VkSemaphore semaphore : {done_, host_}) {
      api_.vkDestroySemaphore(device_, semaphore, nullptr);
    }
    api_.vkDestroyCommandPool(device_, pool_, nullptr);
    api_.vkDestroyPipelineLayout(device_, layout_, nullptr);
    api_.vkDestroyDevice(device_, nullptr);
  }
  if (instance_ != VK_NULL_HANDLE && api_.vkDestroyInstance != nullptr) {
    api_.vkDestroyInstance(instance_, nullptr);
  }
}

void Gpu::free_memory() {
  for (const auto& memory : allocated_) {
    api_.vkDestroyBuffer(device_, memory->buffer, nullptr);
    api_.vkFreeMemory(device_, memory->memory, nullptr);
  }
  allocated_.clear();
}

void Gpu::forget_pipelines() {
  for (const MadePipeline& pipeline : pipelines_) {
    api_.vkDestroyPipeline(device_, pipeline.made, nullptr);
  }
  pipelines_.clear();
}

std::optional<uint32_t> Gpu::memory_type(uint32_t allowed, MemoryKind kind) const {
  constexpr VkMemoryPropertyFlags kSeen =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  // Best first. Memory that is local and seen may be a small window; then it is not preferred.
  const std::array<VkMemoryPropertyFlags, 3> device{kLocal | kSeen, kLocal, kSeen};
  const std::array<VkMemoryPropertyFlags, 3> host{kSeen | kCached, kSeen, kSeen};
  for (const VkMemoryPropertyFlags wish : kind == MemoryKind::kDevice ? device : host) {
    for (uint32_t i = 0; i < memories_.memoryTypeCount; ++i) {
      const VkMemoryType& type = memories_.memoryTypes[i];
      if ((allowed & (1u << i)) == 0 || (type.propertyFlags & wish) != wish) continue;
      const uint64_t heap = memories_.memoryHeaps[type.heapIndex].size;
      if (wish == (kLocal | kSeen) && heap < info_.memory_bytes) continue;
      return i;
    }
  }
  return std::nullopt;
}

Result<const GpuMemory*> Gpu::allocate(size_t bytes, MemoryKind kind) {
  auto made = std::make_unique<GpuMemory>();
  made->bytes = std::max<size_t>((bytes + 255) / 256 * 256, 256);
  VkBufferCreateInfo create{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  create.size = made->bytes;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  TRY_VULKAN(api_.vkCreateBuffer(device_, &create, nullptr, &made->buffer), "a buffer of the GPU");
  GpuMemory& memory = *allocated_.emplace_back(std::move(made));
  VkMemoryRequirements needs{};
  api_.vkGetBufferMemoryRequirements(device_, memory.buffer, &needs);
  const auto type = memory_type(needs.memoryTypeBits, kind);
  if (!type) {
    return Error{ErrorCode::kUnsupported, fmt::format("{} has no fitting memory", info_.name)};
  }
  VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags};
  info.allocationSize = needs.size;
  info.memoryTypeIndex = *type;
  TRY_VULKAN(api_.vkAllocateMemory(device_, &info, nullptr, &memory.memory),
             "an allocation on the GPU");
  TRY_VULKAN(api_.vkBindBufferMemory(device_, memory.buffer, memory.memory, 0),
             "an allocation on the GPU");
  const bool is_seen =
      (memories_.memoryTypes[*type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
  if (is_seen && !(options_.hides_memory && kind == MemoryKind::kDevice)) {
    void* mapped = nullptr;
    TRY_VULKAN(api_.vkMapMemory(device_, memory.memory, 0, VK_WHOLE_SIZE, 0, &mapped),
               "mapping the GPU's memory");
    memory.mapped = static_cast<std::byte*>(mapped);
  }
  VkBufferDeviceAddressInfo address{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  address.buffer = memory.buffer;
  memory.address = api_.vkGetBufferDeviceAddress(device_, &address);
  return &memory;
}

}  // namespace lockstep::gpu
