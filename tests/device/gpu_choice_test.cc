// The choice of a GPU by "auto", with GPUs that are played, and the one of this machine: tests
// install a software GPU.
#include <doctest/doctest.h>

#if defined(LOCKSTEP_HAS_GPU)

#include "device/cpu/cpu_device.h"
#include "device/vulkan/open_vulkan.h"
#include "kernels/isa.h"

using namespace lockstep;

namespace {

using Opened = Result<std::unique_ptr<Device>>;

DeviceOptions options_of(std::string_view kind) {
  return {.kind = kind, .kernels = available_kernels().back()};
}

Opened works() {
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(options_of("cpu")));
}

Opened fails(int index) {
  return Error{ErrorCode::kUnsupported, "GPU " + std::to_string(index) + " is wrong"};
}

}  // namespace

TEST_CASE("auto takes the first GPU that is no software and can be used") {
  const std::vector<gpu::GpuInfo> gpus{
      {.name = "soft", .is_software = true}, {.name = "first"}, {.name = "second"}};
  std::vector<int> tried;
  const Opened opened = gpu::open_first(gpus, [&](int index) {
    tried.push_back(index);
    return index == 2 ? works() : fails(index);
  });
  CHECK(opened.ok());
  CHECK(tried == std::vector<int>{1, 2});
}

TEST_CASE("auto says of each GPU why it is not used") {
  const std::vector<gpu::GpuInfo> gpus{{.name = "soft", .is_software = true}, {.name = "first"}};
  const Opened refused = gpu::open_first(gpus, fails);
  REQUIRE(!refused.ok());
  CHECK(refused.error().message ==
        "soft is software, which is slower than the processor itself; GPU 1 is wrong");
  CHECK(gpu::open_first({}, fails).error().message == "Vulkan finds no GPU on this machine");
}

TEST_CASE("where there is only a software GPU, auto is the processor") {
  const auto gpus = gpu::list_gpus();
  const bool has_hardware =
      gpus.ok() && std::any_of(gpus.value().begin(), gpus.value().end(),
                               [](const gpu::GpuInfo& gpu) { return !gpu.is_software; });
  if (has_hardware) return;
  const Opened opened = open_device(options_of("auto"));
  REQUIRE(opened.ok());
  CHECK(opened.value()->description().starts_with("cpu ("));
}

TEST_CASE("a device says where it computes") {
  DeviceOptions options = options_of("cpu");
  CHECK(open_device(options).value()->description() ==
        std::string("cpu (") + options.kernels->name + ", 1 thread)");
  options.threads = 2;
  CHECK(open_device(options).value()->description() ==
        std::string("cpu (") + options.kernels->name + ", 2 threads)");
  const Opened gpu = open_device(options_of("vulkan"));
  REQUIRE_MESSAGE(gpu.ok(), (gpu.ok() ? "" : gpu.error().message));
  CHECK(gpu.value()->description() == "vulkan: " + gpu::list_gpus().value().front().name + " (" +
                                          gpu::list_gpus().value().front().driver_name + ")");
}

TEST_CASE("a GPU that does not exist is refused with the number of those that do") {
  const Opened refused = open_device(options_of("vulkan:99"));
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.starts_with("there is no GPU 99; this machine has "));
}

#endif
