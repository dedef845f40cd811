// A GPU that does not answer. Tests install a software GPU.
#include <doctest/doctest.h>

#if defined(LOCKSTEP_HAS_GPU)

#include "device/device_values.h"
#include "device/vulkan/vulkan_device.h"
#include "kernels/isa.h"

using namespace lockstep;

TEST_CASE("a GPU that does not answer in time is lost, which ends its rank and nothing waits") {
  const auto opened =
      gpu::VulkanDevice::open({.kernels = available_kernels().back()},
                              {.tries_kernels = false, .answer_limit = std::chrono::nanoseconds(0)},
                              gpu::PlanOptions{.specialises = false});
  REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().message));
  Device& device = *opened.value();
  constexpr size_t kCount = size_t{1} << 22;
  const Slice x = room(device, kCount), sum = room(device, kCount);
  device.queue(Add{x, kCount, sum});
  const Status lost = device.wait();
  REQUIRE(!lost.ok());
  CHECK(lost.error().code == ErrorCode::kInternal);  // of these a rank's process ends
  CHECK(lost.error().message ==
        gpu::list_gpus().value().front().name + " did not finish its work in time");
  device.queue(Add{x, kCount, sum});
  const Status still = device.wait();
  REQUIRE(!still.ok());
  CHECK(still.error().code == ErrorCode::kInternal);
  CHECK(device.wait().ok());  // nothing was queued
}

#endif
