// How a GPU runs a queue: turns of the host, and recordings. Tests install a software GPU.
#include <doctest/doctest.h>

#if defined(LOCKSTEP_HAS_GPU)

#include "device/gpu_operations.h"
#include "device/turns.h"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

std::unique_ptr<Device> open_gpu() {
  auto gpu =
      gpu::VulkanDevice::open({.kernels = available_kernels().back()}, {.tries_kernels = false},
                              gpu::PlanOptions{.specialises = false});
  REQUIRE_MESSAGE(gpu.ok(), (gpu.ok() ? "" : gpu.error().message));
  return std::move(gpu.value());
}

uint64_t recorded(const Device& device) {
  return dynamic_cast<const gpu::VulkanDevice&>(device).recorded_count();
}

}  // namespace

TEST_CASE("a GPU stops for the host's turns, and goes on with what it has written") {
  const auto device = open_gpu();
  check_turns(*device);
  CHECK(recorded(*device) == 1);  // the second round was played again
}

TEST_CASE("after a turn that fails a GPU can go on") {
  check_failed_turn(*open_gpu());
}

TEST_CASE("queues that differ in anything are recorded, equal ones are not") {
  const auto device = open_gpu();
  const Slice x = put(*device, std::vector<float>(64, 1.0f));
  const Slice y = put(*device, std::vector<float>(64, 0.0f), Access::kHost);
  const auto add = [&](size_t count) {
    device->queue(Add{x, count, y});
    REQUIRE(device->wait().ok());
    return recorded(*device);
  };
  CHECK(add(64) == 1);
  CHECK(add(64) == 1);
  CHECK(add(32) == 2);
  CHECK(add(64) == 2);
  for (size_t count = 1; count <= 8; ++count) add(count);  // as many as are kept
  CHECK(recorded(*device) == 10);
  CHECK(add(8) == 10);
  CHECK(add(64) == 11);
  CHECK(device->host(y.buffer)[40] == 4.0f);
  CHECK(device->host(y.buffer)[0] == 14.0f);
}

TEST_CASE("a queue whose operations have no work can be the first one that a GPU runs") {
  const auto device = open_gpu();
  const Slice x = put(*device, std::vector<float>(64, 1.0f));
  device->queue(Add{x, 0, x});
  REQUIRE(device->wait().ok());
  device->queue(Add{x, 64, x});
  REQUIRE(device->wait().ok());
  std::vector<float> values(1);
  device->read(x, std::as_writable_bytes(std::span(values)));
  CHECK(values[0] == 2.0f);
}

// The lists that operations point to may hold other matrices the next time.
TEST_CASE("a list of other matrices is another queue") {
  const auto device = open_gpu();
  Random random(1);
  const Shape shape{4, 64, {{64, 0, 1}}};
  std::vector<MatrixId> all = pack_experts(*device, random, 2, any_format(random), shape);
  std::vector<MatrixId> used{all[0]};
  const Slice x = put_numbers(*device, random, 64);
  const Slice y = put(*device, std::vector<float>(4), Access::kHost);
  const auto multiply = [&] {
    device->queue(HeadMatmul{.matrices = &used,
                             .input = x,
                             .input_stride = 64,
                             .tokens = 1,
                             .output = y,
                             .output_stride = 4});
    REQUIRE(device->wait().ok());
    const auto values = device->host(y.buffer).first(4);
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> first = multiply();
  used[0] = all[1];
  CHECK(multiply() != first);
  used[0] = all[0];
  CHECK(multiply() == first);
  CHECK(recorded(*device) == 2);
}

#endif
