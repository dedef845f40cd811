#version 450
#extension GL_GOOGLE_include_directive : require
// The self-test of a device: our arithmetic on numbers of the host's choice.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(ProbeParams)

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= PARAMS.count) return;
  Floats from = Floats(advance(PARAMS.inputs, i, 12u));
  Floats to = Floats(advance(PARAMS.outputs, i, 16u));
  const float a = from.at[0], b = from.at[1], c = from.at[2];
  to.at[0] = exact_fma(a, b, c);
  to.at[1] = exact_div(a, b);
  to.at[2] = exact_sqrt(abs(a));
  to.at[3] = exact_exp(c);
}
