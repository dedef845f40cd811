// The speed of a device, of the processor and of a GPU: tests install a software one.
#include "device/open/device_probe.h"

#include <doctest/doctest.h>

#include "device/open/gpu_report.h"
#include "kernels/isa.h"

using namespace lockstep;

namespace {

void check_speed(Device& device) {
  const auto speed = probe_device(device, {.bytes_max = uint64_t{40} << 20, .measure_s = 0.01});
  REQUIRE_MESSAGE(speed.ok(), speed.error().message);
  CHECK(speed.value().read_gb_s > 0);
  CHECK(speed.value().kernel_us >= 0);
  CHECK(speed.value().wait_us >= 0);
  CHECK(speed.value().operations_s > 0);
}

DeviceOptions probed(std::string_view kind) {
  return {.kind = kind, .kernels = available_kernels().back()};
}

}  // namespace

TEST_CASE("a processor's reading, overhead and arithmetic are measured") {
  check_speed(*open_device(probed("cpu")).value());
  // This one reads 0.5 GB/s, and takes 2 ms for an operation.
  const auto slow = open_device(probed("slowed:0.5/2000"));
  const auto speed = probe_device(*slow.value(), {.bytes_max = 1, .measure_s = 0});
  REQUIRE(speed.ok());
  CHECK(speed.value().read_gb_s <= 0.51);
  CHECK(speed.value().kernel_us >= 1900);
}

TEST_CASE("a device is opened with what is known of it") {
  const auto processor = open_with_report(probed("cpu"));
  REQUIRE(processor.ok());
  CHECK(processor.value().kind == "cpu");
  CHECK(processor.value().gpu.name.empty());
  CHECK(!open_with_report(probed("vulcan")).ok());
}

#if defined(LOCKSTEP_HAS_GPU)

TEST_CASE("a GPU is opened with its memory, and measured") {
  const auto gpu = open_with_report(probed("vulkan"));
  REQUIRE_MESSAGE(gpu.ok(), gpu.error().message);
  const GpuReport& report = gpu.value().gpu;
  CHECK(gpu.value().kind == "vulkan:0");
  CHECK(!report.name.empty());
  CHECK(report.memory_bytes > 0);
  CHECK(report.free_bytes > 0);
  CHECK(report.free_bytes <= report.memory_bytes);
  if (report.is_software) CHECK(!report.has_own_memory);
  check_speed(*gpu.value().device);
}

TEST_CASE("auto says which device it is, and why it is the processor") {
  const auto chosen = open_with_report(probed("auto"));
  REQUIRE(chosen.ok());
  const bool is_gpu = !chosen.value().gpu.name.empty();
  CHECK(is_gpu == chosen.value().kind.starts_with("vulkan:"));
  CHECK(is_gpu == chosen.value().reason.empty());
  CHECK((is_gpu || chosen.value().kind == "cpu"));
}

#endif
