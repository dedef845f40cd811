// How the processor runs what only latent attention needs: rotation of neighbours, and a matrix for
// each head.
#include <algorithm>

#include "base/check.h"
#include "device/cpu_device.h"
#include "device/packing.h"

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
  LOCKSTEP_CHECK(first.columns <= op.input_stride && first.rows <= op.output_stride);
  const auto input_stride = static_cast<size_t>(op.input_stride);
  const auto output_stride = static_cast<size_t>(op.output_stride);
  const float* input = floats(op.input, tokens * heads * input_stride);
  float* output = floats(op.output, tokens * heads * output_stride);
  team_.for_each_chunk(static_cast<int>(heads), 1, [&](int begin, int end) {
    for (auto head = static_cast<size_t>(begin); head < static_cast<size_t>(end); ++head) {
      const Matrix& m = matrix((*op.matrices)[head]);
      MatmulArgs args = matmul_args(m);
      args.input = input + head * input_stride;
      args.input_stride = heads * input_stride;
      args.tokens = op.tokens;
      args.output = output + head * output_stride;
      args.token_stride = heads * output_stride;
      args.tile_begin = 0;
      args.tile_end = tile_count(m.rows);
      multiply(m.dtype, args);
    }
  });
}

}  // namespace lockstep
