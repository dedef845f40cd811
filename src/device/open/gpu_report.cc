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

Result<OpenedDevice> open_gpu_with_report(const DeviceOptions& options, int index) {
  OpenedDevice opened{.device = TRY(gpu::open_vulkan(options, index)),
                      .kind = fmt::format("vulkan:{}", index)};
  opened.gpu = report_of(TRY(gpu::list_gpus())[static_cast<size_t>(index)]);
  return opened;
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

Result<OpenedDevice> open_gpu_with_report(const DeviceOptions& options, int /*index*/) {
  return check_device_kind(options.kind).error();
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
  TRY(check_device_kind(options.kind));
  if (const auto index = parse_vulkan(options.kind)) return open_gpu_with_report(options, *index);
  std::string reason;
  if (options.kind == "auto") {
    auto opened = open_best_with_report(options);
    if (opened.ok()) return opened;
    reason = opened.error().message;
    options.kind = "cpu";
  }
  std::string kind(options.kind);
  return OpenedDevice{TRY(open_device(options)), std::move(kind), std::move(reason), {}};
}

}  // namespace lockstep
