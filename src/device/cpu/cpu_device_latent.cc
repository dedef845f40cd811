// How the CPU runs the operations of latent attention: rotation of neighbours, and a matrix per
// head.
#include <algorithm>

#include "base/check.h"
#include "device/cpu/cpu_device.h"

namespace lockstep {

void CpuDevice::run(const RotatePairs& op) {
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const auto half = static_cast<size_t>(op.dims / 2);
  const auto x_stride = static_cast<size_t>(op.x_stride),
             y_stride = static_cast<size_t>(op.y_stride);
  const float* x = floats(op.x, tokens * heads * x_stride) + op.x_offset;
  float* y = floats(op.y, tokens * heads * y_stride) + op.y_offset;
  const float* table = floats(op.table, tokens * 2 * half);
  for (size_t row = 0; row < tokens * heads; ++row) {
    const float* cosine = table + row / heads * 2 * half;
    const float* sine = cosine + half;
    const float* from = x + row * x_stride;
    float* to = y + row * y_stride;
    for (size_t i = 0; i < half; ++i) {
      const float first = from[2 * i], second = from[2 * i + 1];
      to[2 * i] = first * cosine[i] - second * sine[i];
      to[2 * i + 1] = second * cosine[i] + first * sine[i];
    }
  }
}

void CpuDevice::run(const HeadMatmul& op) {
  const auto heads = op.matrices->size(), tokens = static_cast<size_t>(op.tokens);
  if (heads == 0 || tokens == 0) return;
  const Matrix& first = matrix(op.matrices->front());
  LOCKSTEP_CHECK(first.packed.columns <= op.input_stride && first.packed.rows <= op.output_stride);
  const auto input_stride = static_cast<size_t>(op.input_stride);
  const auto output_stride = static_cast<size_t>(op.output_stride);
  const float* input = floats(op.input, tokens * heads * input_stride);
  float* output = floats(op.output, tokens * heads * output_stride);
  const int round = tokens_in_scratch(heads * first.input_bytes());
  for (int begin = 0; begin < op.tokens; begin += round) {
    const int count = std::min(round, op.tokens - begin);
    const auto at = static_cast<size_t>(begin);
    // Tokens and heads both count as rows.
    const Input prepared = prepare(first, input + at * heads * input_stride, input_stride,
                                   count * static_cast<int>(heads), scratch_->data());
    const size_t head_cost = first.rows() * first.columns() * static_cast<size_t>(count);
    pieces(static_cast<int>(heads), head_cost, Chunks::kEqual, [&](int piece) {
      const auto head = static_cast<size_t>(piece);
      const Matrix& m = matrix((*op.matrices)[head]);
      const MatmulPart part = part_of(m, prepared.of(head), heads * prepared.stride);
      kernels_.matmul({.parts = &part,
                       .part_count = 1,
                       .tile_begin = 0,
                       .tile_end = m.tiles(),
                       .tokens = count,
                       .output = output + (at * heads + head) * output_stride,
                       .token_stride = heads * output_stride});
    });
  }
}

}  // namespace lockstep
