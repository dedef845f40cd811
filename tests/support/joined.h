// Concatenates two texts of tokens.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

inline std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace lockstep
