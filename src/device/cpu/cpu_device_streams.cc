// How the CPU runs the operations of several residual streams.
#include <algorithm>

#include "base/check.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/softmax.h"
#include "kernels/math.h"

namespace lockstep {
namespace {

// Columns of a token that a thread takes together.
constexpr size_t kStreamColumns = 1024;

// Divides numbers `stride` apart by their sum plus epsilon.
void divide_by_sum(float* first, int count, int stride, float epsilon) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += first[i * stride];
  sum += epsilon;
  for (int i = 0; i < count; ++i) first[i * stride] /= sum;
}

// Nearly the same sums in all rows and columns of (n, n): as many steps as the model was trained
// with, not until they agree.
void balance(float* mix, int n, int rounds, float epsilon) {
  for (int row = 0; row < n; ++row) soften(mix + row * n, n);
  for (int i = 0; i < n * n; ++i) mix[i] += epsilon;
  for (int round = 0; round < rounds; ++round) {
    for (int row = 0; round > 0 && row < n; ++row) divide_by_sum(mix + row * n, n, 1, epsilon);
    for (int column = 0; column < n; ++column) divide_by_sum(mix + column, n, n, epsilon);
  }
}

}  // namespace

void CpuDevice::run(const StreamGates& op) {
  LOCKSTEP_CHECK(op.streams > 0 && op.streams <= kResidualStreamsMax);
  const auto tokens = static_cast<size_t>(op.tokens);
  const int n = op.streams;
  const bool has_all = op.rounds > 0;
  const size_t gates = has_all ? gates_of(n) : static_cast<size_t>(n);
  float* x = floats(op.x, tokens * gates);
  const float* scale = floats(op.scale, has_all ? 3 : 1);
  const float* bias = floats(op.bias, gates);
  const size_t cost = 64 * gates * static_cast<size_t>(std::max(1, op.rounds));
  parallel(op.tokens, cost, [&](int begin, int end) {
    for (auto token = static_cast<size_t>(begin); token < static_cast<size_t>(end); ++token) {
      float* row = x + token * gates;
      for (int i = 0; i < static_cast<int>(gates); ++i) {
        row[i] = row[i] * scale[std::min(i / n, 2)] + bias[i];
      }
      for (int i = 0; i < n; ++i) row[i] = sigmoid_f32(row[i]) + op.epsilon;
      if (!has_all) continue;
      for (int i = n; i < 2 * n; ++i) row[i] = 2 * sigmoid_f32(row[i]);
      balance(row + 2 * n, n, op.rounds, op.epsilon);
    }
  });
}

void CpuDevice::run(const CollapseStreams& op) {
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const auto streams = static_cast<size_t>(op.streams);
  const auto stride = static_cast<size_t>(op.weights_stride);
  const float* input = floats(op.input, tokens * streams * columns);
  const float* weights = floats(op.weights, (tokens - 1) * stride + streams);
  float* output = floats(op.output, tokens * columns);
  in_columns(tokens, columns, kStreamColumns, streams,
             [&](size_t token, size_t first, size_t count) {
               kernels_.collapse_streams(input + token * streams * columns + first, columns,
                                         weights + token * stride, op.streams, count,
                                         output + token * columns + first);
             });
}

void CpuDevice::run(const UpdateStreams& op) {
  LOCKSTEP_CHECK(op.streams > 0 && op.streams <= kResidualStreamsMax);
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const auto streams = static_cast<size_t>(op.streams);
  const size_t gates = gates_of(op.streams);
  const float* x = floats(op.x, tokens * columns);
  const float* all = floats(op.gates, tokens * gates);
  float* output = floats(op.output, tokens * streams * columns);
  in_columns(tokens, columns, kStreamColumns, streams * streams,
             [&](size_t token, size_t first, size_t count) {
               const float* of_token = all + token * gates;
               kernels_.update_streams(x + token * columns + first, of_token + streams,
                                       of_token + 2 * streams, op.streams, count,
                                       output + token * streams * columns + first, columns);
             });
}

void CpuDevice::run(const InjectStreams& op) {
  LOCKSTEP_CHECK(op.streams > 0 && op.streams <= kResidualStreamsMax);
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const auto streams = static_cast<size_t>(op.streams);
  const float* x = floats(op.x, tokens * columns);
  const float* gates = floats(op.gates, tokens * streams);
  float* output = floats(op.output, tokens * streams * columns);
  in_columns(tokens, columns, kStreamColumns, streams,
             [&](size_t token, size_t first, size_t count) {
               float post[kResidualStreamsMax];
               for (size_t s = 0; s < streams; ++s) {
                 post[s] = 2 * sigmoid_f32(gates[token * streams + s]);
               }
               kernels_.inject_streams(x + token * columns + first, post, op.streams, count,
                                       output + token * streams * columns + first, columns);
             });
}

// A piece of work is a stream of a token, whose output is written once its key has been read.
void CpuDevice::run(const MatchStreams& op) {
  LOCKSTEP_CHECK(op.streams > 0 && op.columns > 0);
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const auto streams = static_cast<size_t>(op.streams);
  const size_t all = tokens * streams * columns;
  const float* keys = floats(op.keys, all);
  const float* queries = floats(op.queries, all);
  const float* values = floats(op.values, tokens * columns);
  float* output = floats(op.output, all);
  parallel(op.tokens * op.streams, 2 * columns, [&](int begin, int end) {
    for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row) {
      const size_t at = row * columns;
      kernels_.match_stream(keys + at, queries + at, values + row / streams * columns, op.columns,
                            output + at);
    }
  });
}

}  // namespace lockstep
