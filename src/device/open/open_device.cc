#include "base/log.h"
#include "device/open/delayed_device.h"
#include "device/open/gpu_report.h"
#include "device/open/slowed_device.h"
#if defined(LOCKSTEP_HAS_GPU)
#include "device/vulkan/open_vulkan.h"
#endif

namespace lockstep {
namespace {

using Opened = Result<std::unique_ptr<Device>>;

#if defined(LOCKSTEP_HAS_GPU)
Opened open_gpu(const DeviceOptions& options, int index) {
  return gpu::open_vulkan(options, index);
}
#else
Opened open_gpu(const DeviceOptions& options, int /*index*/) {
  return check_device_kind(options.kind).error();
}
#endif

Opened open_auto(const DeviceOptions& options) {
  OpenedDevice opened = TRY(open_with_report(options));
  log_info("computing on {}{}{}", opened.device->description(), opened.reason.empty() ? "" : ": ",
           opened.reason);
  return std::move(opened.device);
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const DeviceOptions& options) {
  TRY(check_device_kind(options.kind));
  if (options.kind == "auto") return open_auto(options);
  if (options.kind == "delayed") {
    return std::unique_ptr<Device>(std::make_unique<DelayedDevice>(options));
  }
  if (const auto machine = parse_slowed(options.kind)) {
    return std::unique_ptr<Device>(std::make_unique<SlowedDevice>(options, *machine));
  }
  if (const auto index = parse_vulkan(options.kind)) return open_gpu(options, *index);
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(options));
}

}  // namespace lockstep
