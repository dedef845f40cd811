// The specialization constants of a kernel, as Vulkan takes them.
#pragma once

#include <algorithm>
#include <array>

#include "device/gpu/plan.h"
#include "device/vulkan/api.h"

namespace lockstep::gpu {

// Constants 0 and 1 of common.glsl: how this device computes.
struct ArithmeticConstants {
  uint32_t fma = 0;
  uint32_t flush = 0;
};

class Specialization {
 public:
  Specialization(const ArithmeticConstants& arithmetic, const KernelVariant& variant) {
    values_ = {arithmetic.fma, arithmetic.flush};
    std::copy(variant.constants.begin(), variant.constants.end(), values_.begin() + 2);
    for (uint32_t i = 0; i < kCount; ++i) entries_[i] = {kIds[i], i * 4, 4};
    info_ = {kCount, entries_.data(), sizeof values_, values_.data()};
  }
  Specialization(const Specialization&) = delete;
  Specialization& operator=(const Specialization&) = delete;

  // Lives as long as this object.
  const VkSpecializationInfo& info() const { return info_; }

 private:
  static constexpr uint32_t kCount = 10;
  static constexpr std::array<uint32_t, kCount> kIds{0, 1, 10, 11, 12, 13, 14, 15, 16, 17};

  std::array<uint32_t, kCount> values_{};
  std::array<VkSpecializationMapEntry, kCount> entries_{};
  VkSpecializationInfo info_{};
};

}  // namespace lockstep::gpu
