// The element types of stored tensors, with safetensors' names.
#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep {

// Weights are computed only from the first three types, or from codes with scales
// (stored_matrix.h); kU8 may hold E8M0 scales or FP4 pairs, kU32 and kI32 packed codes.
enum class DType { kF32, kF16, kBF16, kF8E4M3, kF8E8M0, kU8, kI8, kU32, kI32, kI64 };

constexpr size_t dtype_bytes(DType type) {
  switch (type) {
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kU32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF8E4M3:
    case DType::kF8E8M0:
    case DType::kU8:
    case DType::kI8:
      return 1;
  }
  return 0;
}

constexpr std::string_view dtype_name(DType type) {
  constexpr std::string_view kNames[] = {"F32", "F16", "BF16", "F8_E4M3", "F8_E8M0",
                                         "U8",  "I8",  "U32",  "I32",     "I64"};
  return kNames[static_cast<size_t>(type)];
}

constexpr bool is_float(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

}  // namespace lockstep
