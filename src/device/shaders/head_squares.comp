#version 450
#extension GL_GOOGLE_include_directive : require
// HeadSquares: device/cpu/cpu_device_head_norms.cc. A workgroup has one head of one token.
#include "common.glsl"

layout(local_size_x = 128) in;
PARAMETERS(HeadSquaresParams)

shared float squares[kLanesOfNorm];

void main() {
  const uint lane = gl_LocalInvocationIndex;
  const uint head = gl_WorkGroupID.x, token = gl_WorkGroupID.y;
  Floats row = Floats(advance(PARAMS.x, token, PARAMS.x_stride * 4u));
  const uint begin = head * PARAMS.head_dim;
  float sum = 0.0;
  for (uint i = lane; i < PARAMS.head_dim; i += kLanesOfNorm) {
    const float value = row.at[begin + i];
    sum = exact_add(sum, exact_mul(value, value));
  }
  squares[lane] = sum;
  barrier();
  for (uint half_count = kLanesOfNorm / 2u; half_count > 0u; half_count /= 2u) {
    if (lane < half_count) squares[lane] = exact_add(squares[lane], squares[lane + half_count]);
    barrier();
  }
  if (lane > 0u) return;
  Floats(advance(PARAMS.outputs, token, PARAMS.output_stride * 4u)).at[head] = squares[0];
}
