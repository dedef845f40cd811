#include "device/vulkan/api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>

namespace lockstep::gpu {
namespace {

#if defined(__APPLE__)
// MoltenVK of Homebrew (`brew install molten-vk`) works without a loader.
constexpr std::array kLibraries = {"libvulkan.1.dylib", "libMoltenVK.dylib",
                                   "/opt/homebrew/lib/libvulkan.1.dylib",
                                   "/opt/homebrew/lib/libMoltenVK.dylib"};
constexpr const char* kPackages = "brew install molten-vk";
#else
constexpr std::array kLibraries = {"libvulkan.so.1"};
constexpr const char* kPackages = "libvulkan1 and a driver such as mesa-vulkan-drivers";
#endif

// Stays open: a driver's threads may run until the process ends.
void* open_library() {
#ifdef __APPLE__
  // MoltenVK's fast maths would change bits.
  setenv("MVK_CONFIG_FAST_MATH_ENABLED", "0", 1);
#endif
  for (const char* name : kLibraries) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

Error missing_function(const char* name) {
  return {ErrorCode::kUnsupported,
          fmt::format("this system's Vulkan lacks {}; update its driver", name)};
}

}  // namespace

Result<VulkanApi> VulkanApi::open() {
  static void* const library = open_library();
  if (library == nullptr) {
    return Error{ErrorCode::kUnsupported, fmt::format("this system has no Vulkan ({})", kPackages)};
  }
  VulkanApi api;
  api.vkGetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (api.vkGetInstanceProcAddr == nullptr) return missing_function("vkGetInstanceProcAddr");
  api.vkCreateInstance = reinterpret_cast<PFN_vkCreateInstance>(
      api.vkGetInstanceProcAddr(nullptr, "vkCreateInstance"));
  if (api.vkCreateInstance == nullptr) return missing_function("vkCreateInstance");
  constexpr const char* kExtensions = "vkEnumerateInstanceExtensionProperties";
  api.vkEnumerateInstanceExtensionProperties =
      reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(
          api.vkGetInstanceProcAddr(nullptr, kExtensions));
  if (api.vkEnumerateInstanceExtensionProperties == nullptr) return missing_function(kExtensions);
  return api;
}

Status VulkanApi::find_instance_functions(VkInstance instance) {
#define LOCKSTEP_VULKAN_FIND(name)                                             \
  name = reinterpret_cast<PFN_##name>(vkGetInstanceProcAddr(instance, #name)); \
  if (!(name)) return missing_function(#name);
  LOCKSTEP_VULKAN_INSTANCE_FUNCTIONS(LOCKSTEP_VULKAN_FIND)
#undef LOCKSTEP_VULKAN_FIND
  return Ok{};
}

Status VulkanApi::find_device_functions(VkDevice device) {
#define LOCKSTEP_VULKAN_FIND(name)                                         \
  name = reinterpret_cast<PFN_##name>(vkGetDeviceProcAddr(device, #name)); \
  if (!(name)) return missing_function(#name);
  LOCKSTEP_VULKAN_DEVICE_FUNCTIONS(LOCKSTEP_VULKAN_FIND)
#undef LOCKSTEP_VULKAN_FIND
  return Ok{};
}

std::string vulkan_error(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "no memory is left";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "no memory is left on the GPU";
    case VK_ERROR_DEVICE_LOST:
      return "the GPU was lost";
    case VK_ERROR_INITIALIZATION_FAILED:
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "there is no driver that works";
    default:
      return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

Error error_of(VkResult result, const char* what) {
  const bool is_memory =
      result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return {is_memory ? ErrorCode::kExhausted : ErrorCode::kInternal,
          fmt::format("{} failed: {}", what, vulkan_error(result))};
}

}  // namespace lockstep::gpu
