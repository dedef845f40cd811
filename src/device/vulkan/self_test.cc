#include "device/vulkan/self_test.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/math.h"

namespace lockstep::gpu {
namespace {

constexpr size_t kTriples = 4096;

using Triple = std::array<float, 3>;
using Results = std::array<float, 4>;

bool is_normal(float x) {
  return std::isnormal(x) || x == 0;
}

// Numbers of all magnitudes; in every second triple the sum nearly cancels the product, so that a
// product that was rounded before shows.
std::vector<Triple> triples() {
  std::mt19937 random(1);
  const auto number = [&](float scale) {
    const auto bits = static_cast<uint32_t>(random());
    const float x = std::bit_cast<float>((bits & 0x807fffffu) | 0x3f800000u);  // 1 <= |x| < 2
    return std::ldexp(x, static_cast<int>(scale * static_cast<float>(random() % 64)) - 32);
  };
  std::vector<Triple> made(kTriples);
  for (size_t i = 0; i < kTriples; ++i) {
    const float a = number(1), b = number(1);
    made[i] = {a, b, i % 2 == 0 ? -(a * b) : number(0.6f)};
  }
  return made;
}

Results expected(const Triple& x) {
  return {std::fmaf(x[0], x[1], x[2]), x[0] / x[1], std::sqrt(std::fabs(x[0])), exp_f32(x[2])};
}

bool agrees(float a, float b) {
  return !is_normal(b) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

}  // namespace

Result<bool> has_exact_arithmetic(Gpu& gpu) {
  const std::vector<Triple> inputs = triples();
  const size_t params_at = kTriples * (sizeof(Triple) + sizeof(Results));
  const GpuMemory& memory = *TRY(gpu.allocate(params_at + kParamBytesMax, MemoryKind::kHost));
  std::memcpy(memory.mapped, inputs.data(), kTriples * sizeof(Triple));
  const KernelVariant variant{Kernel::kProbe, {}};
  const ProbeParams params{.inputs = memory.address,
                           .outputs = memory.address + kTriples * sizeof(Triple),
                           .count = static_cast<uint32_t>(kTriples)};
  std::memcpy(memory.mapped + params_at, &params, sizeof params);
  TRY(gpu.make_pipeline(variant));
  const std::array dispatches{
      Dispatch{.variant = variant, .groups = {kTriples / kGroupSize, 1}, .waits = true}};
  TRY(gpu.submit(dispatches, memory.address + params_at));
  TRY(gpu.finish());
  for (size_t i = 0; i < kTriples; ++i) {
    Results results;
    std::memcpy(results.data(), memory.mapped + kTriples * sizeof(Triple) + i * sizeof(Results),
                sizeof(Results));
    const Results wanted = expected(inputs[i]);
    for (size_t k = 0; k < results.size(); ++k) {
      if (!agrees(results[k], wanted[k])) return false;
    }
  }
  return true;
}

}  // namespace lockstep::gpu
