// How the CPU runs layers that keep a state: tokens one after the other, channels and heads on
// several threads.
#include <algorithm>

#include "base/check.h"
#include "device/cpu/cpu_device.h"

namespace lockstep {
namespace {

// Channels of a convolution that a thread takes together.
constexpr size_t kColumnsOfChunk = 256;

int chunks_of(size_t columns) {
  return static_cast<int>((columns + kColumnsOfChunk - 1) / kColumnsOfChunk);
}

// An operation's part of the state of this number; `offset`: of the part.
Slice state_part(const StateSlots& states, int32_t number, size_t offset) {
  const size_t at = static_cast<size_t>(number) * states.stride + offset;
  return {states.memory.buffer, states.memory.offset + at};
}

}  // namespace

void CpuDevice::run(const Convolve& op) {
  LOCKSTEP_CHECK(op.taps > 0 && op.dilation > 0);
  for (const Convolve::Part& part : op.parts) {
    if (part.channels > 0 && op.tokens > 0) convolve(op, part);
  }
}

void CpuDevice::convolve(const Convolve& op, const Convolve::Part& part) {
  const auto tokens = static_cast<size_t>(op.tokens);
  const auto channels = static_cast<size_t>(part.channels), taps = static_cast<size_t>(op.taps);
  const size_t past = (taps - 1) * static_cast<size_t>(op.dilation);
  const int32_t* from = ints(op.states.from, tokens);
  const int32_t* to = ints(op.states.to, tokens);
  const float* x = floats(part.x, tokens * channels);
  const float* weights = floats(part.weights, taps * channels);
  float* y = floats(part.y, tokens * channels);
  const auto state = [&](int32_t number) {
    return floats(state_part(op.states, number, part.state_offset), past * channels);
  };
  parallel(chunks_of(channels), tokens * (past + 1) * kColumnsOfChunk, [&](int begin, int end) {
    const size_t first = static_cast<size_t>(begin) * kColumnsOfChunk;
    const size_t last = std::min(channels, static_cast<size_t>(end) * kColumnsOfChunk);
    for (size_t token = 0; token < tokens; ++token) {
      kernels_.convolve({.x = x + token * channels + first,
                         .weights = weights + first,
                         .before = from[token] < 0 ? nullptr : state(from[token]) + first,
                         .after = state(to[token]) + first,
                         .y = y + token * channels + first,
                         .taps = op.taps,
                         .channels = static_cast<int32_t>(last - first),
                         .stride = channels,
                         .dilation = op.dilation});
    }
  });
}

void CpuDevice::run(const Decay& op) {
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  float* x = floats(op.x, tokens * columns);
  const float* bias = floats(op.bias, columns);
  const float* rate = floats(op.rate, columns);
  constexpr size_t kCost = 64;  // of one number
  parallel(op.tokens, kCost * columns, [&](int begin, int end) {
    for (auto token = static_cast<size_t>(begin); token < static_cast<size_t>(end); ++token) {
      float* row = x + token * columns;
      if (op.least == 0) {
        kernels_.decay(bias, rate, row, columns);
      } else {
        kernels_.bounded_decay(bias, rate, op.least, row, columns);
      }
    }
  });
}

void CpuDevice::run(const Sigmoid& op) {
  float* x = floats(op.x, op.count);
  kernels_.sigmoid(x, x, op.count);
}

void CpuDevice::run(const Silu& op) {
  float* x = floats(op.x, op.count);
  constexpr size_t kCost = 32;  // of one number
  in_columns(1, op.count, kColumnsOfChunk, kCost,
             [&](size_t, size_t first, size_t count) { kernels_.silu(x + first, count); });
}

void CpuDevice::run(const DeltaRule& op) {
  if (op.tokens == 0 || op.value_heads == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.value_heads);
  const auto key_heads = static_cast<size_t>(op.key_heads);
  const auto key_dim = static_cast<size_t>(op.key_dim);
  const auto value_dim = static_cast<size_t>(op.value_dim);
  const auto decays = static_cast<size_t>(op.decays);
  LOCKSTEP_CHECK(heads % key_heads == 0 && (decays == 1 || decays == key_dim));
  const int32_t* from = ints(op.states.from, tokens);
  const int32_t* to = ints(op.states.to, tokens);
  const float* query = floats(op.query, tokens * key_heads * key_dim);
  const float* key = floats(op.key, tokens * key_heads * key_dim);
  const float* value = floats(op.value, tokens * heads * value_dim);
  const float* decay = floats(op.decay, tokens * heads * decays);
  const float* rate = floats(op.rate, tokens * heads);
  float* output = floats(op.output, tokens * heads * value_dim);
  const auto state = [&](int32_t number, size_t head) {
    const size_t of_head = key_dim * value_dim;
    return floats(state_part(op.states, number, op.state_offset + head * of_head), of_head);
  };
  parallel(op.value_heads, tokens * key_dim * value_dim, [&](int begin, int end) {
    for (auto head = static_cast<size_t>(begin); head < static_cast<size_t>(end); ++head) {
      const size_t key_head = head / (heads / key_heads);
      for (size_t token = 0; token < tokens; ++token) {
        const size_t of_keys = (token * key_heads + key_head) * key_dim;
        const size_t of_values = token * heads + head;
        kernels_.delta_rule({.before = from[token] < 0 ? nullptr : state(from[token], head),
                             .after = state(to[token], head),
                             .query = query + of_keys,
                             .key = key + of_keys,
                             .value = value + of_values * value_dim,
                             .decay = decay + of_values * decays,
                             .decay_stride = op.decays == 1 ? 0 : 1,
                             .rate = rate[of_values],
                             .key_dim = op.key_dim,
                             .value_dim = op.value_dim,
                             .output = output + of_values * value_dim});
      }
    }
  });
}

}  // namespace lockstep
