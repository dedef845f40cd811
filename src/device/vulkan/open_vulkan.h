// Opens the device kinds "vulkan" and "vulkan:N", and the GPU of "auto".
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "device/device.h"
#include "device/vulkan/gpu.h"

namespace lockstep::gpu {

// kInvalidArgument if there is no such GPU, kUnsupported if it cannot be used.
Result<std::unique_ptr<Device>> open_vulkan(const DeviceOptions& options, int index);

// The first of these GPUs that is no software and can be opened. kUnsupported says of each why not.
using OpenGpu = std::function<Result<std::unique_ptr<Device>>(int index)>;
Result<std::unique_ptr<Device>> open_first(std::span<const GpuInfo> gpus, const OpenGpu& open);

}  // namespace lockstep::gpu
