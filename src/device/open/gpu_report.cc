#include "device/open/gpu_report.h"

#include <fmt/format.h>

#include <utility>

#include "device/device_kinds.h"
#if defined(LOCKSTEP_HAS_GPU)
#include "device/vulkan/open_vulkan.h"
#include "kernels/isa.h"
#endif

namespace lockstep {

#if defined(LOCKSTEP_HAS_GPU)

namespace {

GpuReport report_of(const gpu::GpuInfo& info) {
  return {.name = info.name,
          .driver = info.driver,
          .memory_bytes = info.memory_bytes,
          .free_bytes = info.free_bytes,
          .is_software = info.is_software,
          .has_own_memory = info.has_own_memory};
}

Result<GpuReport> report_of_gpu(int index) {
  return report_of(TRY(gpu::list_gpus()).at(static_cast<size_t>(index)));
}

Result<OpenedDevice> open_best_with_report(const DeviceOptions& options) {
  int chosen = 0;
  const std::vector<gpu::GpuInfo> gpus = TRY(gpu::list_gpus());
  OpenedDevice opened{.device = TRY(gpu::open_first(gpus, [&](int index) {
                        chosen = index;
                        return gpu::open_vulkan(options, index);
                      }))};
  opened.kind = fmt::format("vulkan:{}", chosen);
  opened.gpu = report_of(gpus[static_cast<size_t>(chosen)]);
  return opened;
}

}  // namespace

Result<std::vector<GpuReport>> report_gpus() {
  std::vector<GpuReport> reports;
  for (const gpu::GpuInfo& info : TRY(gpu::list_gpus())) {
    GpuReport report = report_of(info);
    const auto opened = gpu::open_vulkan({.kernels = available_kernels().front()},
                                         static_cast<int>(reports.size()));
    if (!opened.ok()) report.problem = opened.error().message;
    reports.push_back(std::move(report));
  }
  return reports;
}

#else

namespace {

Result<GpuReport> report_of_gpu(int /*index*/) {
  return check_device_kind("vulkan").error();
}
Result<OpenedDevice> open_best_with_report(const DeviceOptions& /*options*/) {
  return check_device_kind("vulkan").error();
}

}  // namespace

Result<std::vector<GpuReport>> report_gpus() {
  return check_device_kind("vulkan").error();
}

#endif

Result<OpenedDevice> open_with_report(DeviceOptions options) {
  OpenedDevice opened;
  if (options.kind == "auto") {
    auto best = open_best_with_report(options);
    if (best.ok()) return best;
    opened.reason = best.error().message;
    options.kind = "cpu";
  }
  opened.kind = options.kind;
  opened.device = TRY(open_device(options));
  if (const auto index = parse_vulkan(options.kind)) {
    opened.kind = fmt::format("vulkan:{}", *index);
    opened.gpu = TRY(report_of_gpu(*index));
  }
  return opened;
}

}  // namespace lockstep
