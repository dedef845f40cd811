// Measures how fast a device computes, with operations like those of a model: what a planner must
// know of it. Used by `lockstep bench device`. One thread, which uses the device.
#pragma once

#include <cstdint>
#include <functional>

#include "device/device.h"

namespace lockstep {

struct DeviceSpeed {
  double read_gb_s = 0;     // stored weights of 4 bits (Q4_0) that products with one token read
  double kernel_us = 0;     // of an operation that waits for the one before it, besides reading
  double wait_us = 0;       // of Device::wait(), besides the operations
  double operations_s = 0;  // multiplications and additions of products with many tokens
};

struct DeviceProbe {
  uint64_t bytes_max = uint64_t{512} << 20;  // of weights: more than caches hold
  double measure_s = 0.1;                    // how long one figure may take; slow devices need more
  std::function<double()> now = {};          // in seconds; none: the steady clock
};

// Leaves its weights and buffers on the device. kExhausted without memory for them.
Result<DeviceSpeed> probe_device(Device& device, const DeviceProbe& probe = {});

}  // namespace lockstep
