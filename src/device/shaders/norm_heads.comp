#version 450
#extension GL_GOOGLE_include_directive : require
// NormHeads: device/cpu/cpu_device_head_norms.cc. A workgroup has some columns of one token.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(NormHeadsParams)

shared float shared_scale;

void main() {
  const uint column = gl_GlobalInvocationID.x, token = gl_WorkGroupID.y;
  if (gl_LocalInvocationIndex == 0u) {
    Floats squares = Floats(advance(PARAMS.squares, token, PARAMS.squares_stride * 4u));
    float sum = 0.0;
    for (uint head = 0u; head < PARAMS.all_heads; ++head) sum = exact_add(sum, squares.at[head]);
    const float mean = exact_div(sum, float(PARAMS.all_heads * PARAMS.head_dim));
    shared_scale = exact_div(1.0, exact_sqrt(exact_add(mean, PARAMS.epsilon)));
  }
  barrier();
  if (column >= PARAMS.columns) return;
  Floats x = Floats(advance(PARAMS.x, token, PARAMS.columns * 4u));
  x.at[column] =
      exact_mul(exact_mul(x.at[column], shared_scale), Floats(PARAMS.weight).at[column]);
}
