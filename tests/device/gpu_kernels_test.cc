// Kernels of GPUs against those of the processor: every operation with random shapes, strides and
// formats gives the same bits. Runs on whatever Vulkan finds first; tests install a software GPU.
#include <doctest/doctest.h>

#if defined(LOCKSTEP_HAS_GPU)

#include "device/gpu_operations.h"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

void compare_all(const GpuOptions& options, uint32_t rounds) {
  Devices devices(options);
  for (const NamedCase& test : kCases) {
    const size_t before = devices.compared();
    for (uint32_t seed = 0; seed < rounds; ++seed) {
      CAPTURE(test.name);
      devices.compare(test.build, seed);
    }
    CHECK(devices.compared() > before);
  }
}

}  // namespace

TEST_CASE("operations on a GPU have the bits of the processor, whatever their shapes and formats") {
  compare_all({.specialises = false}, 200);
}

TEST_CASE("kernels made for one format have the same bits") {
  compare_all({.specialises = true}, 8);
}

TEST_CASE("a GPU without dot products of bytes has the same bits") {
  compare_all({.specialises = false, .avoids_dot = true}, 40);
}

TEST_CASE("products that end with nothing else have the same bits") {
  const auto opened = gpu::Gpu::open({});
  REQUIRE(opened.ok());
  // In all other cases they end with what follows.
  REQUIRE(opened.value()->info().invocations >= gpu::kInvocationsOfEnds);
  REQUIRE(opened.value()->info().shared_bytes >= gpu::kSharedBytesOfEnds);
  Devices devices({.specialises = false, .ends_blocks = false});
  for (auto* const build : {ended_ffn, ended_experts, ended_heads}) {
    for (uint32_t seed = 0; seed < 20; ++seed) devices.compare(build, seed);
  }
}

TEST_CASE("attention of some pages at a time has the same bits") {
  Devices devices({.specialises = false, .attention_pages_max = 2});
  for (uint32_t seed = 0; seed < 40; ++seed) devices.compare(attention, seed);
  for (uint32_t seed = 0; seed < 40; ++seed) devices.compare(sparse_attention, seed);
  for (uint32_t seed = 0; seed < 40; ++seed) devices.compare(compressed_attention, seed);
  for (uint32_t seed = 0; seed < 40; ++seed) devices.compare(row_attention, seed);
}

TEST_CASE("attention of pages that workgroups share has the same bits") {
  Devices devices({.specialises = false, .split_pages_least = 1});
  for (uint32_t seed = 0; seed < 120; ++seed) devices.compare(attention, seed);
}

// A dispatch that does not wait for another, but should, then mostly plays before it.
TEST_CASE("workgroups between two barriers play in any order") {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    compare_all({.specialises = false, .shuffle_seed = seed}, 10);
  }
}

// Only operations whose numbers are no addresses: a page or a row that is read before it is written
// may lie anywhere.
TEST_CASE("a plan without barriers that plays in any order has other bits") {
  Devices devices({.specialises = false, .shuffle_seed = 1, .omits_barriers = true});
  for (auto* const build : {matmul, gated_up, head_matmul, experts, norms}) {
    size_t different = 0;
    for (uint32_t seed = 0; seed < 10; ++seed) different += devices.differences(build, seed);
    CHECK(different > 0);
  }
}

// Part of the operations, for a run with validation layers (tests/CMakeLists.txt).
TEST_CASE("validated operations" * doctest::skip()) {
  compare_all({.specialises = false}, 3);
  compare_all({.specialises = false, .hides_memory = true}, 3);
}

// Shows that messages of the layers are seen: no bytes may not be copied.
TEST_CASE("a copy that validation layers find" * doctest::skip()) {
  const auto gpu = gpu::Gpu::open({});
  REQUIRE(gpu.ok());
  gpu::Gpu& opened = *gpu.value();
  const auto from = opened.allocate(256, gpu::MemoryKind::kHost);
  const auto to = opened.allocate(256, gpu::MemoryKind::kHost);
  REQUIRE((from.ok() && to.ok()));
  REQUIRE(opened.submit_copy(*from.value(), 0, *to.value(), 0, 0).ok());
  CHECK(opened.finish().ok());
}

TEST_CASE("a GPU that flushes subnormal numbers has the same bits") {
  compare_all({.specialises = false, .flushes = true}, 40);
}

TEST_CASE("memory that the host cannot see is read and written all the same") {
  compare_all({.specialises = false, .hides_memory = true}, 8);
}

#endif
