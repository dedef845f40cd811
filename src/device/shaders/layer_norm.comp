#version 450
#extension GL_GOOGLE_include_directive : require
// LayerNorm: device/cpu/cpu_device_sparse.cc. A workgroup norms one row in place; the mean is taken
// out first, and the rest is normed as in norm.comp. An invocation reads only what it has written.
#include "common.glsl"

layout(local_size_x = 128) in;
PARAMETERS(LayerNormParams)

shared float sums[kLanesOfNorm];

float add_lanes(uint lane, float own) {
  sums[lane] = own;
  barrier();
  for (uint half_count = kLanesOfNorm / 2u; half_count > 0u; half_count /= 2u) {
    if (lane < half_count) sums[lane] = exact_add(sums[lane], sums[lane + half_count]);
    barrier();
  }
  const float sum = sums[0];
  barrier();
  return sum;
}

void main() {
  const uint lane = gl_LocalInvocationIndex, columns = PARAMS.columns;
  Floats x = Floats(advance(PARAMS.x, gl_WorkGroupID.x, columns * 4u));
  float sum = 0.0;
  for (uint i = lane; i < columns; i += kLanesOfNorm) sum = exact_add(sum, x.at[i]);
  const float mean = exact_div(add_lanes(lane, sum), float(columns));
  float chain = 0.0;
  for (uint i = lane; i < columns; i += kLanesOfNorm) {
    const float value = exact_sub(x.at[i], mean);
    x.at[i] = value;
    chain = exact_fma(value, value, chain);
  }
  const float square = exact_div(add_lanes(lane, chain), float(columns));
  const float scale = exact_div(1.0, exact_sqrt(exact_add(square, PARAMS.epsilon)));
  Floats weight = Floats(PARAMS.weight), bias = Floats(PARAMS.bias);
  for (uint i = lane; i < columns; i += kLanesOfNorm) {
    const float normed = exact_mul(exact_mul(x.at[i], scale), weight.at[i]);
    x.at[i] = exact_add(normed, bias.at[i]);
  }
}
