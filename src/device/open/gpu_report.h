// The GPUs of this machine, each opened and tested as a rank would. For `lockstep doctor` and
// `lockstep bench device`; takes a second or more where kernels have never been compiled. Runs
// drivers in this process, which a node must not. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace lockstep {

struct GpuReport {
  std::string name;
  std::string driver;  // with its version
  uint64_t memory_bytes = 0;
  uint64_t free_bytes = 0;  // of these, at the moment
  bool is_software = false;
  bool has_own_memory = false;  // apart from the machine's: a card
  std::string problem{};        // why lockstep does not use it; empty: its self-test passed
};

// In the order of vulkan:N. The error says why there can be none.
Result<std::vector<GpuReport>> report_gpus();

// A device that is open, with what is known of it.
struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::string kind;    // what "auto" chose: "cpu", "vulkan:1"
  std::string reason;  // why "auto" is the processor; else empty
  GpuReport gpu;       // without a name: it is no GPU
};
// As open_device(), which says less. "auto" is the first GPU that is no software and can be used,
// else the processor.
Result<OpenedDevice> open_with_report(DeviceOptions options);

}  // namespace lockstep
