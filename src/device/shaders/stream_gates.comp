#version 450
#extension GL_GOOGLE_include_directive : require
// StreamGates: device/cpu/cpu_device_streams.cc. A workgroup has one token, an invocation one number
// of the mix and at most one of the others. Each invocation adds a sum that it needs by itself.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(StreamGatesParams)

shared float mix_of[kMostStreams * kMostStreams];

// The sum of numbers `stride` apart.
float sum_of(uint first, uint stride) {
  float sum = 0.0;
  for (uint i = 0u; i < PARAMS.streams; ++i) sum = exact_add(sum, mix_of[first + i * stride]);
  return sum;
}

// Divides the invocation's number by the sum plus epsilon of those that begin at `first`.
void divide_by_sum(uint lane, uint first, uint stride) {
  const float own = mix_of[lane];
  const float sum = exact_add(sum_of(first, stride), PARAMS.epsilon);
  barrier();
  mix_of[lane] = exact_div(own, sum);
  barrier();
}

// The softmax of a row plus epsilon; one number of it.
void soften(uint lane, uint row) {
  const uint n = PARAMS.streams;
  float largest = mix_of[row * n];
  for (uint i = 1u; i < n; ++i) {
    if (largest < mix_of[row * n + i]) largest = mix_of[row * n + i];
  }
  const float own = exact_exp(exact_sub(mix_of[lane], largest));
  barrier();
  mix_of[lane] = own;
  barrier();
  const float sum = sum_of(row * n, 1u);
  barrier();
  mix_of[lane] = exact_add(exact_div(own, sum), PARAMS.epsilon);
  barrier();
}

// The invocation's number of the mix.
void balance(uint lane, Floats x, float scale, Floats bias) {
  const uint n = PARAMS.streams;
  // All invocations take part in each barrier; those without a number repeat the last.
  const uint own = min(lane, n * n - 1u), row = own / n, column = own % n;
  const uint at = 2u * n + own;
  mix_of[own] = exact_add(exact_mul(x.at[at], scale), bias.at[at]);
  barrier();
  soften(own, row);
  for (uint round = 0u; round < PARAMS.rounds; ++round) {
    if (round > 0u) divide_by_sum(own, row * n, 1u);
    divide_by_sum(own, column, n);
  }
  if (lane < n * n) x.at[at] = mix_of[own];
}

void main() {
  const uint lane = gl_LocalInvocationIndex, n = PARAMS.streams;
  const bool has_all = PARAMS.rounds > 0u;
  Floats x = Floats(advance(PARAMS.x, gl_WorkGroupID.x, (has_all ? n * (2u + n) : n) * 4u));
  Floats scale = Floats(PARAMS.scale), bias = Floats(PARAMS.bias);
  if (lane < (has_all ? 2u * n : n)) {
    const bool is_post = lane >= n;
    const float a = exact_add(exact_mul(x.at[lane], scale.at[is_post ? 1 : 0]), bias.at[lane]);
    const float opened = exact_sigmoid(a);
    x.at[lane] = is_post ? exact_mul(2.0, opened) : exact_add(opened, PARAMS.epsilon);
  }
  if (has_all) balance(lane, x, scale.at[2], bias);
}
