// How the CPU runs each operation: slices become pointers, work is cut into chunks for the team.
// The assignment of chunks to threads never changes a result: every output is computed whole by one
// kernel call. Products are in cpu_device_products.cc.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/cpu/cpu_device.h"

namespace lockstep {
namespace {

constexpr int kHeadsOfPass = 16;  // of attention's kernels

}  // namespace

void CpuDevice::run(const Embed& op) {
  const std::span<const MatrixId> parts = op.matrices();
  const Matrix& m = matrix(parts.front());
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens);
  const size_t stride = stride_or(op.output_stride, m.columns());
  LOCKSTEP_CHECK(m.columns() <= stride);
  const int32_t* rows = ints(op.rows, tokens);
  float* output = floats(op.output, (tokens - 1) * stride + m.columns());
  const int64_t row_count = int64_t{m.packed.rows} * static_cast<int64_t>(parts.size());
  for (size_t t = 0; t < tokens; ++t) LOCKSTEP_CHECK(rows[t] < row_count);
  parallel(op.tokens, m.columns(), [&](int begin, int end) {
    for (int t = begin; t < end; ++t) {
      if (rows[t] < 0) continue;
      const Matrix& part = matrix(parts[static_cast<size_t>(rows[t] / m.packed.rows)]);
      const int32_t row = rows[t] % m.packed.rows;
      kernels_.embed({.matrix = &part.packed,
                      .blocks = part.layout->blocks.data(),
                      .rows = &row,
                      .token_begin = 0,
                      .token_end = 1,
                      .output = output + static_cast<size_t>(t) * stride,
                      .output_stride = stride});
    }
  });
}

void CpuDevice::run(const CopyRows& op) {
  const auto count = static_cast<size_t>(op.count), columns = static_cast<size_t>(op.columns);
  const size_t stride = stride_or(op.input_stride, columns);
  const int32_t* rows = ints(op.rows, count);
  float* output = floats(op.output, count * columns);
  for (size_t i = 0; i < count; ++i) {
    const Slice row{op.input.buffer, op.input.offset + static_cast<size_t>(rows[i]) * stride};
    std::memcpy(output + i * columns, floats(row, columns), columns * sizeof(float));
  }
}

void CpuDevice::run(const CopyColumns& op) {
  if (op.count == 0 || op.columns == 0) return;
  const auto count = static_cast<size_t>(op.count), columns = static_cast<size_t>(op.columns);
  const auto stride = static_cast<size_t>(op.output_stride);
  const size_t from = stride_or(op.input_stride, columns);
  LOCKSTEP_CHECK(columns <= stride && columns <= from);
  const float* input = floats(op.input, (count - 1) * from + columns);
  float* output = floats(op.output, (count - 1) * stride + columns);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(output + i * stride, input + i * from, columns * sizeof(float));
  }
}

void CpuDevice::run(const RmsNorm& op) {
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const size_t stride = stride_or(op.stride, columns);
  LOCKSTEP_CHECK(op.weights > 0);
  const RmsNormArgs args{.x = floats(op.x, tokens * stride),
                         .x_stride = stride,
                         .weight = floats(op.weight, static_cast<size_t>(op.weights) * columns),
                         .columns = op.columns,
                         .epsilon = op.epsilon,
                         .y = floats(op.y, tokens * stride),
                         .y_stride = stride,
                         .weights = op.weights};
  parallel(op.tokens, 2 * columns, [&](int begin, int end) {
    RmsNormArgs part = args;
    part.token_begin = begin;
    part.token_end = end;
    kernels_.rms_norm(part);
  });
}

void CpuDevice::run(const AddRmsNorm& op) {
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const float* x = floats(op.x, tokens * columns);
  float* sum = floats(op.sum, tokens * columns);
  const RmsNormArgs args{.x = sum,
                         .x_stride = columns,
                         .weight = floats(op.weight, columns),
                         .columns = op.columns,
                         .epsilon = op.epsilon,
                         .y = floats(op.y, tokens * columns),
                         .y_stride = columns};
  parallel(op.tokens, 3 * columns, [&](int begin, int end) {
    RmsNormArgs part = args;
    for (int token = begin; token < end; ++token) {
      const size_t at = static_cast<size_t>(token) * columns;
      kernels_.add(x + at, sum + at, columns);
      part.token_begin = token;
      part.token_end = token + 1;
      kernels_.rms_norm(part);
    }
  });
}

void CpuDevice::run(const Rope& op) {
  const auto tokens = static_cast<size_t>(op.tokens);
  const size_t stride = static_cast<size_t>(op.heads) * static_cast<size_t>(op.head_dim);
  const RopeArgs args{.x = floats(op.x, tokens * stride),
                      .x_stride = stride,
                      .heads = op.heads,
                      .head_dim = op.head_dim,
                      .half = op.half,
                      .table = floats(op.table, tokens * 2 * static_cast<size_t>(op.half))};
  parallel(op.tokens, 2 * stride, [&](int begin, int end) {
    RopeArgs part = args;
    part.token_begin = begin;
    part.token_end = end;
    kernels_.rope(part);
  });
}

void CpuDevice::run(const StoreKv& op) {
  const auto tokens = static_cast<size_t>(op.tokens);
  const auto keys_stride = static_cast<size_t>(op.keys_stride);
  const auto values_stride = static_cast<size_t>(op.values_stride);
  const StoreKvArgs args{.pages = page_args(op.pages),
                         .keys = floats(op.keys, tokens * keys_stride),
                         .values = floats(op.values, tokens * values_stride),
                         .keys_stride = keys_stride,
                         .values_stride = values_stride,
                         .page = ints(op.page, tokens),
                         .slot = ints(op.slot, tokens)};
  store(args, op.tokens, 4 * keys_stride);
}

void CpuDevice::store(const StoreKvArgs& args, int tokens, size_t cost) {
  parallel(tokens, cost, [&](int begin, int end) {
    StoreKvArgs part = args;
    part.token_begin = begin;
    part.token_end = end;
    kernels_.store_kv(part);
  });
}

void CpuDevice::run(const Attention& op) {
  if (op.heads == 0 || op.tokens == 0) return;
  LOCKSTEP_CHECK(!op.keys_are_rows || (op.window == 0 && op.pages.value_dim == op.pages.head_dim &&
                                       op.pages.head_dim <= kChosenKeyMax));
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const auto head_dim = static_cast<size_t>(op.pages.head_dim);
  const auto value_dim = static_cast<size_t>(op.pages.value_dim);
  const PageArgs pages = page_args(op.pages);
  const float* query = floats(op.query, tokens * heads * head_dim);
  const float* sinks = op.has_sinks ? floats(op.sinks, heads) : nullptr;
  float* output = floats(op.output, tokens * heads * value_dim);
  const int32_t* positions = ints(op.positions, tokens);
  const int32_t* offsets = ints(op.list_offsets, tokens);
  const int32_t* lists = ints(op.page_lists, 0);
  const auto mask_words = static_cast<size_t>(op.mask_words);
  const uint32_t* mask = op.chosen > 0 ? words(op.mask, tokens * mask_words) : nullptr;
  const int kv_heads = op.pages.kv_heads;
  size_t covered = static_cast<size_t>(*std::max_element(positions, positions + tokens)) + 1;
  if (op.chosen > 0) covered = std::min(covered, static_cast<size_t>(op.chosen));
  // A piece of work has the heads of one pass over the pages.
  const int heads_of_piece = std::min({kHeadsOfPass, op.heads, op.heads_per_kv});
  const int pieces =
      (std::min(op.heads, op.heads_per_kv) + heads_of_piece - 1) / heads_of_piece * kv_heads;
  const size_t cost = covered * head_dim * 2 * static_cast<size_t>(heads_of_piece);
  parallel(op.tokens * pieces, cost, [&](int begin, int end) {
    for (int item = begin; item < end; ++item) {
      const auto token = static_cast<size_t>(item / pieces);
      const int kv_head = item % pieces % kv_heads;
      const int group_begin = (op.kv_begin + kv_head) * op.heads_per_kv - op.head_begin;
      const int first = std::max(0, group_begin) + item % pieces / kv_heads * heads_of_piece;
      const int last = std::min({op.heads, group_begin + op.heads_per_kv, first + heads_of_piece});
      if (first >= last) continue;
      const size_t at = token * heads + static_cast<size_t>(first);
      const bool is_sparse = mask != nullptr && positions[token] >= op.chosen;
      const AttentionArgs args{.pages = pages,
                               .kv_head = kv_head,
                               .page_list = lists + offsets[token],
                               .position = positions[token],
                               .window = op.window,
                               .query = query + at * head_dim,
                               .heads = last - first,
                               .scale = op.scale,
                               .sinks = sinks ? sinks + first : nullptr,
                               .output = output + at * value_dim,
                               .chosen = is_sparse ? mask + token * mask_words : nullptr,
                               .keys_are_rows = op.keys_are_rows};
      const bool takes_rows = is_sparse || op.keys_are_rows;
      takes_rows ? kernels_.attention_chosen(args) : kernels_.attention(args);
    }
  });
}

void CpuDevice::run(const AddBias& op) {
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  float* x = floats(op.x, tokens * columns);
  const float* bias = floats(op.bias, columns);
  for (size_t token = 0; token < tokens; ++token) {
    kernels_.add(bias, x + token * columns, columns);
  }
}

void CpuDevice::run(const ScaleRows& op) {
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  float* x = floats(op.x, tokens * columns);
  const float* factors = floats(op.factors, tokens);
  for (size_t token = 0; token < tokens; ++token) {
    for (size_t i = 0; i < columns; ++i) x[token * columns + i] *= factors[token];
  }
}

void CpuDevice::run(const Scale& op) {
  float* x = floats(op.x, op.count);
  const float factor = *floats(op.factor, 1);
  for (size_t i = 0; i < op.count; ++i) x[i] *= factor;
}

// cap * tanh(x / cap) = 2 * cap * sigmoid(2 * x / cap) - cap, and x where that is as near as a
// float can be.
void CpuDevice::run(const Cap& op) {
  constexpr int kChunk = 256;
  constexpr float kLinear = 0x1p-11f;
  float* x = floats(op.x, op.count);
  const float slope = 2.0f / op.cap, height = 2.0f * op.cap;
  const auto chunks = static_cast<int>((op.count + kChunk - 1) / kChunk);
  parallel(chunks, kChunk, [&](int begin, int end) {
    float scaled[kChunk], factors[kChunk];
    for (int chunk = begin; chunk < end; ++chunk) {
      const size_t first = static_cast<size_t>(chunk) * kChunk;
      const size_t count = std::min<size_t>(kChunk, op.count - first);
      float* values = x + first;
      for (size_t i = 0; i < count; ++i) scaled[i] = values[i] * slope;
      for (size_t i = 0; i < count; ++i) factors[i] = height / scaled[i];
      float capped[kChunk];
      kernels_.silu_mul(scaled, factors, capped, count);
      for (size_t i = 0; i < count; ++i) {
        const bool is_linear = scaled[i] < kLinear && scaled[i] > -kLinear;
        values[i] = is_linear ? values[i] : capped[i] - op.cap;
      }
    }
  });
}

void CpuDevice::run(const Add& op) {
  kernels_.add(floats(op.x, op.count), floats(op.sum, op.count), op.count);
}

}  // namespace lockstep
