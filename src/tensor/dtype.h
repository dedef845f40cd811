// The element types of stored weights and activations.
#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep {

enum class DType { kF32, kF16, kBF16 };

constexpr size_t dtype_bytes(DType type) {
  return type == DType::kF32 ? 4 : 2;
}
constexpr std::string_view dtype_name(DType type) {
  return type == DType::kF32 ? "F32" : type == DType::kF16 ? "F16" : "BF16";
}

}  // namespace lockstep
