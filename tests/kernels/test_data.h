// For the kernel tests: inputs (kernels/answers/sample_data.h) and comparison of bits.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "kernels/answers/sample_data.h"
#include "kernels/isa.h"

namespace lockstep {

inline constexpr float kUntouched = -12345.0f;  // what an output holds before a kernel writes it

inline const KernelTable& scalar_kernels() {
  return *available_kernels().front();
}

// The index of the first element whose bits differ, or -1. All NaNs are one value.
inline int first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!both_nan && std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace lockstep
