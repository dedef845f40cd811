// GPUs: which ones Vulkan finds, and whether their kernels compute the bits of processors.
#pragma once

#include <string>
#include <vector>

#include "device/open/gpu_report.h"
#include "doctor/facts/finding.h"

namespace lockstep {

struct GpuFacts {
  std::string reason;  // why there can be none; empty: Vulkan works
  std::vector<GpuReport> gpus;
};

// Runs drivers in this process, which a node must not.
GpuFacts collect_gpus();
Findings judge_gpus(const GpuFacts& facts);
// GPUs that could not be tested.
Finding unknown_gpus(std::string_view reason);

}  // namespace lockstep
