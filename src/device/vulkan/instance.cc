#include "device/vulkan/instance.h"

#include <algorithm>
#include <cstring>

namespace lockstep::gpu {
namespace {

constexpr uint32_t kVersion = VK_API_VERSION_1_2;

bool is_among(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::any_of(extensions.begin(), extensions.end(), [&](const VkExtensionProperties& found) {
    return std::strcmp(found.extensionName, name) == 0;
  });
}

// The loader has this extension; MoltenVK without one has not, and hides no device.
bool may_hide_devices(const VulkanApi& api) {
  uint32_t count = 0;
  api.vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  api.vkEnumerateInstanceExtensionProperties(nullptr, &count, extensions.data());
  return is_among(extensions, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
}

}  // namespace

Result<Instance> open_instance() {
  Instance opened{.api = TRY(VulkanApi::open())};
  VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "lockstep";
  application.apiVersion = kVersion;
  VkInstanceCreateInfo create{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  create.pApplicationInfo = &application;
  const char* const portability = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
  if (may_hide_devices(opened.api)) {
    create.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    create.enabledExtensionCount = 1;
    create.ppEnabledExtensionNames = &portability;
  }
  TRY_VULKAN(opened.api.vkCreateInstance(&create, nullptr, &opened.instance), "opening Vulkan");
  TRY(opened.api.find_instance_functions(opened.instance));
  uint32_t count = 0;
  opened.api.vkEnumeratePhysicalDevices(opened.instance, &count, nullptr);
  opened.devices.resize(count);
  opened.api.vkEnumeratePhysicalDevices(opened.instance, &count, opened.devices.data());
  opened.devices.resize(count);
  return opened;
}

bool has_extension(const VulkanApi& api, VkPhysicalDevice physical, const char* name) {
  uint32_t count = 0;
  api.vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  api.vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, extensions.data());
  return is_among(extensions, name);
}

}  // namespace lockstep::gpu
