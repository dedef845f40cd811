#include "device/radv_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace lockstep::testing {
namespace {

using gpu::error_of;

constexpr const char* kDrivers = "/usr/share/vulkan/icd.d";

// Debian adds the architecture: radeon_icd.x86_64.json.
std::string find_driver() {
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(kDrivers, error)) {
    if (file.path().filename().string().starts_with("radeon_icd.")) return file.path();
  }
  return {};
}

template <class Function>
Function find(const gpu::VulkanApi& api, VkDevice device, const char* name) {
  return reinterpret_cast<Function>(api.vkGetDeviceProcAddr(device, name));
}

}  // namespace

int CompiledKernel::lines_with(const std::vector<std::string>& mnemonics) const {
  std::istringstream lines(assembly);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    count += std::any_of(mnemonics.begin(), mnemonics.end(), [&](const std::string& mnemonic) {
      return line.find(mnemonic) != std::string::npos;
    });
  }
  return count;
}

Result<std::unique_ptr<RadvCompiler>> RadvCompiler::open(const std::string& family) {
  const std::string driver = find_driver();
  if (driver.empty()) {
    return Error{ErrorCode::kUnsupported, "Mesa's driver for AMD's GPUs is not installed"};
  }
  setenv("VK_ICD_FILENAMES", driver.c_str(), 1);
  setenv("VK_DRIVER_FILES", driver.c_str(), 1);
  setenv("RADV_FORCE_FAMILY", family.c_str(), 1);
  std::unique_ptr<RadvCompiler> compiler(new RadvCompiler);
  compiler->api_ = TRY(gpu::VulkanApi::open());
  TRY(compiler->find_device());
  TRY(compiler->open_device());
  return compiler;
}

Status RadvCompiler::find_device() {
  VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo create{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  create.pApplicationInfo = &application;
  TRY_VULKAN(api_.vkCreateInstance(&create, nullptr, &instance_), "opening Vulkan");
  TRY(api_.find_instance_functions(instance_));
  uint32_t count = 1;
  api_.vkEnumeratePhysicalDevices(instance_, &count, &physical_);
  if (count == 0) return Error{ErrorCode::kUnsupported, "the driver does not know this GPU"};
  VkPhysicalDeviceDriverProperties driver{.sType =
                                              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                         .pNext = &driver};
  api_.vkGetPhysicalDeviceProperties2(physical_, &properties);
  driver_ = driver.driverInfo;
  return Ok{};
}

Status RadvCompiler::open_device() {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  executables.pipelineExecutableInfo = VK_TRUE;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
      .pNext = &executables};
  dot.shaderIntegerDotProduct = VK_TRUE;
  VkPhysicalDeviceFeatures wanted{};
  wanted.shaderFloat64 = VK_TRUE;
  VkPhysicalDeviceVulkan12Features has12{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &dot};
  has12.bufferDeviceAddress = VK_TRUE;
  has12.storageBuffer8BitAccess = VK_TRUE;
  VkPhysicalDeviceVulkan11Features has11{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &has12};
  has11.storageBuffer16BitAccess = VK_TRUE;
  const std::array extensions{VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME,
                              VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME};
  VkDeviceCreateInfo device{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &has11};
  device.pEnabledFeatures = &wanted;
  device.queueCreateInfoCount = 1;
  device.pQueueCreateInfos = &queue;
  device.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  device.ppEnabledExtensionNames = extensions.data();
  TRY_VULKAN(api_.vkCreateDevice(physical_, &device, nullptr, &device_), "opening the device");
  TRY(api_.find_device_functions(device_));
  layout_ = TRY(gpu::make_pipeline_layout(api_, device_));
  return Ok{};
}

RadvCompiler::~RadvCompiler() {
  if (device_ != VK_NULL_HANDLE) {
    api_.vkDestroyPipelineLayout(device_, layout_, nullptr);
    api_.vkDestroyDevice(device_, nullptr);
  }
  if (instance_ != VK_NULL_HANDLE) api_.vkDestroyInstance(instance_, nullptr);
}

CompiledKernel RadvCompiler::figures_of(VkPipeline pipeline) const {
  const auto get = find<PFN_vkGetPipelineExecutableStatisticsKHR>(
      api_, device_, "vkGetPipelineExecutableStatisticsKHR");
  VkPipelineExecutableInfoKHR info{.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
  info.pipeline = pipeline;
  uint32_t count = 0;
  get(device_, &info, &count, nullptr);
  std::vector<VkPipelineExecutableStatisticKHR> all(
      count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
  get(device_, &info, &count, all.data());
  const auto value = [&](std::string_view name) -> uint64_t {
    for (const auto& statistic : all) {
      if (name == statistic.name) return statistic.value.u64;
    }
    return 0;
  };
  return {.vector_registers = value("VGPRs"),
          .scalar_registers = value("SGPRs"),
          .spilled_registers = value("Spilled VGPRs") + value("Spilled SGPRs"),
          .scratch_bytes = value("Scratch size"),
          .shared_bytes = value("LDS size"),
          .subgroups = value("Subgroups per SIMD"),
          .instructions = value("Instructions"),
          .assembly = {}};
}

std::string RadvCompiler::assembly_of(VkPipeline pipeline) const {
  const auto get = find<PFN_vkGetPipelineExecutableInternalRepresentationsKHR>(
      api_, device_, "vkGetPipelineExecutableInternalRepresentationsKHR");
  VkPipelineExecutableInfoKHR info{.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
  info.pipeline = pipeline;
  uint32_t count = 0;
  get(device_, &info, &count, nullptr);
  std::vector<VkPipelineExecutableInternalRepresentationKHR> all(
      count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
  get(device_, &info, &count, all.data());
  std::vector<std::string> texts(count);
  for (uint32_t i = 0; i < count; ++i) {
    texts[i].resize(all[i].dataSize + 1);
    all[i].pData = texts[i].data();
  }
  get(device_, &info, &count, all.data());
  for (uint32_t i = 0; i < count; ++i) {
    if (std::string_view(all[i].name) == "Assembly") return texts[i];
  }
  return {};
}

Result<CompiledKernel> RadvCompiler::compile(const gpu::KernelVariant& variant,
                                             const gpu::KernelFeatures& features,
                                             const gpu::ArithmeticConstants& arithmetic) {
  const gpu::Specialization constants(arithmetic, variant);
  VkPipeline pipeline = TRY(gpu::compile_pipeline(
      api_, device_,
      {.layout = layout_,
       .code = gpu::kernel_code(variant.kernel, features),
       .constants = constants,
       .flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
                VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR}));
  CompiledKernel compiled = figures_of(pipeline);
  compiled.assembly = assembly_of(pipeline);
  api_.vkDestroyPipeline(device_, pipeline, nullptr);
  return compiled;
}

}  // namespace lockstep::testing
