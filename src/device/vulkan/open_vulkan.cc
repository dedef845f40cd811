#include "device/vulkan/open_vulkan.h"

#include "device/vulkan/vulkan_device.h"

namespace lockstep::gpu {

Result<std::unique_ptr<Device>> open_vulkan(const DeviceOptions& options, int index) {
  return VulkanDevice::open(options, {.index = index});
}

Result<std::unique_ptr<Device>> open_first(std::span<const GpuInfo> gpus, const OpenGpu& open) {
  std::string reasons;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (!reasons.empty()) reasons += "; ";
    if (gpus[i].is_software) {
      reasons += gpus[i].name + " is software, which is slower than the processor itself";
      continue;
    }
    auto opened = open(static_cast<int>(i));
    if (opened.ok()) return opened;
    reasons += opened.error().message;
  }
  if (reasons.empty()) reasons = "Vulkan finds no GPU on this machine";
  return Error{ErrorCode::kUnsupported, reasons};
}

}  // namespace lockstep::gpu
