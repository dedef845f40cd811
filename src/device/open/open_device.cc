#include <string>

#include "device/open/delayed_device.h"
#include "device/open/slowed_device.h"

namespace lockstep {

Result<std::unique_ptr<Device>> open_device(const DeviceOptions& options) {
  if (options.kind == "cpu") return std::unique_ptr<Device>(std::make_unique<CpuDevice>(options));
  if (options.kind == "delayed") {
    return std::unique_ptr<Device>(std::make_unique<DelayedDevice>(options));
  }
  if (const auto machine = parse_slowed(options.kind)) {
    return std::unique_ptr<Device>(std::make_unique<SlowedDevice>(options, *machine));
  }
  return Error{ErrorCode::kInvalidArgument,
               "there is no device \"" + std::string(options.kind) +
                   "\"; use cpu, delayed or slowed:READ_GB_S/KERNEL_US"};
}

}  // namespace lockstep
