#include <string>

#include "device/delayed_device.h"

namespace lockstep {

Result<std::unique_ptr<Device>> open_device(const DeviceOptions& options) {
  if (options.kind == "cpu") return std::unique_ptr<Device>(std::make_unique<CpuDevice>(options));
  if (options.kind == "delayed") {
    return std::unique_ptr<Device>(std::make_unique<DelayedDevice>(options));
  }
  return Error{ErrorCode::kInvalidArgument,
               "there is no device \"" + std::string(options.kind) + "\", use cpu or delayed"};
}

}  // namespace lockstep
