#include "device/open/gpu_report.h"

#include "device/device_kinds.h"
#if defined(LOCKSTEP_HAS_GPU)
#include "device/vulkan/open_vulkan.h"
#include "kernels/isa.h"
#endif

namespace lockstep {

#if defined(LOCKSTEP_HAS_GPU)

Result<std::vector<GpuReport>> report_gpus() {
  std::vector<GpuReport> reports;
  for (const gpu::GpuInfo& info : TRY(gpu::list_gpus())) {
    GpuReport report{.name = info.name,
                     .driver = info.driver,
                     .memory_bytes = info.memory_bytes,
                     .is_software = info.is_software};
    const auto opened = gpu::open_vulkan({.kernels = available_kernels().front()},
                                         static_cast<int>(reports.size()));
    if (!opened.ok()) report.problem = opened.error().message;
    reports.push_back(std::move(report));
  }
  return reports;
}

#else

Result<std::vector<GpuReport>> report_gpus() {
  return check_device_kind("vulkan").error();
}

#endif

}  // namespace lockstep
