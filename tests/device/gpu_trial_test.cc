// The self-test of a GPU, with kernels that are made wrong. Tests install a software GPU.
#include <doctest/doctest.h>

#if defined(LOCKSTEP_HAS_GPU)

#include "device/vulkan/vulkan_device.h"
#include "kernels/isa.h"

using namespace lockstep;
using gpu::Kernel;

namespace {

Result<std::unique_ptr<Device>> open(const gpu::Gpu::Options& options) {
  return gpu::VulkanDevice::open({.kernels = available_kernels().back()}, options,
                                 gpu::PlanOptions{.specialises = false});
}

}  // namespace

TEST_CASE("a GPU whose kernels are right passes its self-test") {
  const auto device = open({});
  CHECK_MESSAGE(device.ok(), (device.ok() ? "" : device.error().message));
  CHECK(open({.hides_memory = true}).ok());
  CHECK(open({.flushes = true}).ok());
}

TEST_CASE("a GPU with a wrong kernel is refused, with its name, its driver and the kernel") {
  const gpu::GpuInfo info = gpu::list_gpus().value().front();
  const std::pair<Kernel, std::string> kWrong[] = {
      {Kernel::kMatmul, "products of float32 weights"},
      {Kernel::kNorm, "norms"},
      {Kernel::kAttention, "attention"},
      {Kernel::kConvolve, "convolutions"},
      {Kernel::kElementwise, "decays"},
      {Kernel::kDelta, "the delta rule"},
  };
  for (const auto& wrong : kWrong) {
    const std::string& name = wrong.second;
    CAPTURE(name);
    const auto refused = open({.wrong = wrong.first});
    REQUIRE(!refused.ok());
    CHECK(refused.error().code == ErrorCode::kUnsupported);
    CHECK(refused.error().message == info.name + " (" + info.driver +
                                         ") computes other bits than processors do in " + name +
                                         ", so lockstep does not use it; try a newer driver");
  }
  CHECK(open({.tries_kernels = false, .wrong = Kernel::kMatmul}).ok());
}

#endif
