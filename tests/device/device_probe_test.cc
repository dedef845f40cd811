// The speed of a device, of the processor and of a GPU: tests install a software one.
#include "device/open/device_probe.h"

#include <doctest/doctest.h>

#include <map>

#include "device/null_device.h"
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

// Plays a device on a clock of its own: an operation takes 2 ms, and what it reads at 0.5 GB/s or
// what it computes at 10^10 operations a second, if that is longer; a run takes 0.5 ms besides.
class PlayedDevice final : public NullDevice {
 public:
  double now_s = 0;

  Result<MatrixId> pack(const MatrixSource& source) override {
    const auto id = static_cast<MatrixId>(sources_.size());
    sources_[id] = source;
    return id;
  }
  void queue(const Operation& operation) override {
    now_s += 2e-3;
    const auto* product = std::get_if<Matmul>(&operation);
    if (product == nullptr) return;
    const MatrixSource& matrix = sources_.at(product->products[0].matrix);
    const double elements = static_cast<double>(matrix.rows) * matrix.columns;
    const double read_s = elements * 18 / 32 / 0.5e9;
    now_s += std::max(product->tokens == 1 ? read_s : 0, 2 * elements * product->tokens / 1e10);
  }
  Status run(const Turns& /*turn*/) override {
    now_s += 0.5e-3;
    return Ok{};
  }

 private:
  std::map<MatrixId, MatrixSource> sources_;
};

}  // namespace

TEST_CASE("a processor's reading, overhead and arithmetic are measured") {
  check_speed(*open_device(probed("cpu")).value());
}

TEST_CASE("the figures are those of the device, whatever else takes time") {
  for (const double measure_s : {0.0, 0.1, 10.0}) {
    CAPTURE(measure_s);
    PlayedDevice device;
    const auto speed =
        probe_device(device, {.measure_s = measure_s, .now = [&] { return device.now_s; }});
    REQUIRE(speed.ok());
    CHECK(speed.value().kernel_us == doctest::Approx(2'000).epsilon(0.05));
    CHECK(speed.value().wait_us == doctest::Approx(500).epsilon(0.3));
    CHECK(speed.value().read_gb_s == doctest::Approx(0.5).epsilon(0.05));
    CHECK(speed.value().operations_s <= 1e10);
    CHECK(speed.value().operations_s >= (measure_s > 1 ? 0.9e10 : 0.5e10));
  }
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
