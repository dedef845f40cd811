// Operations whose products end with what follows them (PlanOptions::ends_blocks), with random
// shapes and formats, for gpu_operations.h.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "device/gpu_compare.h"
#include "device/gpu_gated_operations.h"

namespace lockstep::testing {

inline Slice result(Device& device, int rows, int columns, std::vector<Output>& outputs) {
  const auto count = static_cast<size_t>(rows * columns);
  const Slice slice = put(device, std::vector<float>(count), Access::kHost);
  outputs.push_back({slice, count});
  return slice;
}

// A gate and an up of one format, multiples of 32 rows, and what multiplies the result.
inline std::vector<Output> ended_ffn(Device& device, Random& random) {
  const int tokens = between(random, 1, 12), columns = between(random, 1, 300);
  const Shape up{32 * between(random, 1, 12), columns, {{columns, 0, 1}}};
  const Shape down{between(random, 1, 50), up.rows, random_steps(random, up.rows)};
  const std::vector<MatrixId> pair = pack_experts(device, random, 2, any_format(random), up);
  std::vector<Output> outputs;
  const GatedUp op{.gate = pair[0],
                   .up = pair[1],
                   .input = put_numbers(device, random, static_cast<size_t>(tokens * columns)),
                   .tokens = tokens,
                   .scratch = room(device, static_cast<size_t>(tokens * up.rows)),
                   .output = result(device, tokens, up.rows, outputs),
                   .activation = random_gate(random),
                   .limit = kGateLimit};
  const MatrixId id = pack_random(device, random, any_format(random), down);
  const Slice output = result(device, subtrees_of(down.steps) * tokens, down.rows, outputs);
  device.queue(op);
  device.queue(Matmul{op.output, tokens, {{id, output}}});
  return outputs;
}

// Experts of one format and mostly a shared one, in one dispatch with them if that has it too.
inline std::vector<Output> ended_experts(Device& device, Random& random) {
  const int tokens = between(random, 1, 12), all = between(random, 2, 10);
  const int chosen = between(random, 1, std::min(9, all)), hidden = between(random, 1, 200);
  const int ffn = 32 * between(random, 1, 4), shared_ffn = 32 * between(random, 1, 5);
  const FormatCase& format = any_format(random);
  const FormatCase& shared_format = random() % 4 == 0 ? any_format(random) : format;
  const FormatCase& down_format = any_format(random);
  const Shape up_shape{ffn, hidden, {{hidden, 0, 1}}};
  ExpertMatrices& matrices = keep_forever<ExpertMatrices>();
  matrices.gate = pack_experts(device, random, all, format, up_shape);
  matrices.up = pack_experts(device, random, all, format, up_shape);
  const std::vector<MatrixId> shared =
      pack_experts(device, random, 2, shared_format, {shared_ffn, hidden, {{hidden, 0, 1}}});
  std::vector<Output> outputs;
  ExpertsUp up = random_experts_up(device, random, matrices, {tokens, chosen, hidden, ffn});
  up.output = result(device, tokens * chosen, ffn, outputs);
  up.activation = random_gate(random);
  up.limit = kGateLimit;
  up.has_bias = random() % 2 == 0;
  up.gate_bias = put_numbers(device, random, static_cast<size_t>(all * ffn));
  up.up_bias = put_numbers(device, random, static_cast<size_t>(all * ffn));
  up.has_shared = random() % 4 != 0;
  if (up.has_shared) {
    up.shared = {.gate = shared[0],
                 .up = shared[1],
                 .input = up.input,
                 .tokens = tokens,
                 .scratch = room(device, static_cast<size_t>(tokens * shared_ffn)),
                 .output = result(device, tokens, shared_ffn, outputs),
                 .activation = random_gate(random),
                 .limit = 2 * kGateLimit};
  }
  device.queue(up);
  // The results are multiplied one by one: what experts and the shared one have is then seen apart.
  const auto multiply = [&](Slice input, int rows, int columns) {
    const Shape shape{between(random, 1, 40), columns, {{columns, 0, 1}}};
    const MatrixId id = pack_experts(device, random, 1, down_format, shape)[0];
    device.queue(Matmul{input, rows, {{id, result(device, rows, shape.rows, outputs)}}});
  };
  multiply(up.output, tokens * chosen, ffn);
  if (up.has_shared) multiply(up.shared.output, tokens, shared_ffn);
  return outputs;
}

// The matrices of heads, which are as often used transposed.
inline std::vector<MatrixId>& heads_of(Device& device, Random& random, int heads,
                                       const Shape& shape) {
  std::vector<MatrixId>& matrices = keep_forever<std::vector<MatrixId>>();
  const FormatCase& format = any_format(random);
  const bool is_transposed = random() % 2 == 0;
  for (int head = 0; head < heads; ++head) {
    const int rows = is_transposed ? shape.columns : shape.rows;
    const int columns = is_transposed ? shape.rows : shape.columns;
    const RandomMatrix stored(format, rows, (columns + 511) / 512 * 512, random());
    matrices.push_back(packed(device, {.stored = stored.matrix,
                                       .rows = rows,
                                       .columns = columns,
                                       .is_transposed = is_transposed,
                                       .steps = shape.steps,
                                       .keeps_float_input = true}));
  }
  return matrices;
}

// The result of all heads of a token is whole blocks of what multiplies it.
inline std::vector<Output> ended_heads(Device& device, Random& random) {
  const int tokens = between(random, 1, 6), heads = between(random, 1, 6);
  const int columns = between(random, 1, 200), rows = 32 * between(random, 1, 4);
  std::vector<Output> outputs;
  const HeadMatmul op{
      .matrices = &heads_of(device, random, heads, {rows, columns, {{columns, 0, 1}}}),
      .input = put_numbers(device, random, static_cast<size_t>(tokens * heads * columns)),
      .input_stride = columns,
      .tokens = tokens,
      .output = result(device, tokens * heads, rows, outputs),
      .output_stride = rows};
  device.queue(op);
  const int all = heads * rows;
  const Shape shape{between(random, 1, 50), all, random_steps(random, all)};
  const FormatCase& format = any_format(random);
  const MatrixId id = random() % 2 == 0 ? pack_experts(device, random, 1, format, shape)[0]
                                        : pack_random(device, random, format, shape);
  device.queue(
      Matmul{op.output,
             tokens,
             {{id, result(device, subtrees_of(shape.steps) * tokens, shape.rows, outputs)}}});
  return outputs;
}

// Queries to the latent's space, their rotated ends, and the latent's norm, rotation and store.
inline std::vector<Output> absorb(Device& device, Random& random) {
  const int tokens = between(random, 1, 4), heads = between(random, 1, 10);
  const int columns = 4 * between(random, 1, 60), dims = 4 * between(random, 1, 12);
  const int head_dim = columns + dims, nope = between(random, 1, 60), stride = nope + dims;
  const PagesShape shape{static_cast<KvKind>(between(random, 0, 3)), 1, head_dim, columns};
  const Slice state = put(device, std::vector<float>(shape.page_elements()), Access::kHost);
  std::vector<Output> outputs{{state, shape.page_elements()}};
  const Slice query = put_numbers(device, random, static_cast<size_t>(tokens * heads * stride));
  const Slice absorbed = result(device, tokens * heads, head_dim, outputs);
  const auto latent_count = static_cast<size_t>(tokens * head_dim);
  const Slice latent = put_numbers(device, random, latent_count, Access::kHost);
  outputs.push_back({latent, latent_count});
  const Slice weight = put_numbers(device, random, static_cast<size_t>(columns));
  const Slice table = put_numbers(device, random, static_cast<size_t>(tokens * dims));
  std::vector<int32_t> slots;
  for (int i = 0; i < tokens; ++i) slots.push_back(15 * i);
  device.queue(
      HeadMatmul{.matrices = &heads_of(device, random, heads, {columns, nope, {{nope, 0, 1}}}),
                 .input = query,
                 .input_stride = stride,
                 .tokens = tokens,
                 .output = absorbed,
                 .output_stride = head_dim});
  device.queue(
      RotatePairs{query, stride, nope, table, tokens, heads, dims, absorbed, head_dim, columns});
  device.queue(RmsNorm{latent, weight, tokens, columns, 1e-6f, latent, head_dim});
  device.queue(
      RotatePairs{latent, head_dim, columns, table, tokens, 1, dims, latent, head_dim, columns});
  device.queue(
      StoreKv{.pages = shape.at(state),
              .keys = latent,
              .values = latent,
              .keys_stride = head_dim,
              .values_stride = head_dim,
              .page = put_ints(device, std::vector<int32_t>(static_cast<size_t>(tokens), 0)),
              .slot = put_ints(device, slots),
              .tokens = tokens});
  return outputs;
}

}  // namespace lockstep::testing
