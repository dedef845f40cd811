// The GPUs of this machine, each opened and tested as a rank would. For `lockstep doctor`; takes a
// second or more where kernels have never been compiled. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct GpuReport {
  std::string name;
  std::string driver;  // with its version
  uint64_t memory_bytes = 0;
  bool is_software = false;
  std::string problem{};  // why lockstep does not use it; empty: its self-test passed
};

// In the order of vulkan:N. The error says why there can be none.
Result<std::vector<GpuReport>> report_gpus();

}  // namespace lockstep
