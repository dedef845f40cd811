// Names of a device's buffers and matrices, and places in buffers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

enum class BufferId : int32_t {};
enum class MatrixId : int32_t {};

struct Slice {
  static constexpr size_t kElementBytes = 4;  // float or int32

  BufferId buffer{};
  size_t offset = 0;  // in elements

  bool operator==(const Slice&) const = default;
};

// Elements from one row to the next, where a stride of 0 stands for the columns.
inline size_t stride_or(int stride, size_t columns) {
  return stride > 0 ? static_cast<size_t>(stride) : columns;
}

}  // namespace lockstep
