// How the CPU norms heads that several ranks have together.
#include <cmath>
#include <cstddef>

#include "device/cpu/cpu_device.h"
#include "device/cpu/norm_lanes.h"

namespace lockstep {
namespace {

// Squares are rounded, not fused.
float sum_of_squares(const float* x, size_t columns) {
  float lanes[kNormLanes] = {};
  size_t begin = 0;
  for (; begin + kNormLanes <= columns; begin += kNormLanes) {
    for (size_t i = 0; i < kNormLanes; ++i) lanes[i] += x[begin + i] * x[begin + i];
  }
  for (size_t i = 0; begin + i < columns; ++i) lanes[i] += x[begin + i] * x[begin + i];
  return sum_of_lanes(lanes);
}

}  // namespace

void CpuDevice::run(const HeadSquares& op) {
  if (op.tokens == 0 || op.heads == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const auto head_dim = static_cast<size_t>(op.head_dim);
  const auto x_stride = static_cast<size_t>(op.x_stride);
  const auto output_stride = static_cast<size_t>(op.output_stride);
  const float* x = floats(op.x, (tokens - 1) * x_stride + heads * head_dim);
  float* output = floats(op.output, (tokens - 1) * output_stride + heads);
  parallel(op.tokens, heads * head_dim, [&](int begin, int end) {
    for (auto token = static_cast<size_t>(begin); token < static_cast<size_t>(end); ++token) {
      for (size_t head = 0; head < heads; ++head) {
        output[token * output_stride + head] =
            sum_of_squares(x + token * x_stride + head * head_dim, head_dim);
      }
    }
  });
}

void CpuDevice::run(const NormHeads& op) {
  if (op.tokens == 0 || op.heads == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), all = static_cast<size_t>(op.all_heads);
  const auto stride = static_cast<size_t>(op.squares_stride);
  const size_t columns = static_cast<size_t>(op.heads) * static_cast<size_t>(op.head_dim);
  const auto all_columns = static_cast<float>(op.all_heads * op.head_dim);
  const float* squares = floats(op.squares, (tokens - 1) * stride + all);
  const float* weight = floats(op.weight, columns);
  float* x = floats(op.x, tokens * columns);
  parallel(op.tokens, columns, [&](int begin, int end) {
    for (auto token = static_cast<size_t>(begin); token < static_cast<size_t>(end); ++token) {
      float sum = 0;
      for (size_t head = 0; head < all; ++head) sum += squares[token * stride + head];
      const float scale = 1.0f / std::sqrt(sum / all_columns + op.epsilon);
      float* row = x + token * columns;
      for (size_t i = 0; i < columns; ++i) row[i] = (row[i] * scale) * weight[i];
    }
  });
}

}  // namespace lockstep
