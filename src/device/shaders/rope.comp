#version 450
#extension GL_GOOGLE_include_directive : require
// Rotates pairs (i, i + half) of each head in place: kernels/generic/layers.inl.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(RopeParams)

void main() {
  const uint half_dims = PARAMS.half_dims, heads = PARAMS.heads;
  const uint index = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;  // token * heads + head
  if (index >= half_dims) return;
  Floats x = Floats(advance(PARAMS.x, row, PARAMS.head_dim * 4u));
  Floats table = Floats(advance(PARAMS.table, row / heads, 2u * half_dims * 4u));
  const float cosine = table.at[index], sine = table.at[half_dims + index];
  const float first = x.at[index], second = x.at[half_dims + index];
  x.at[index] = exact_sub(exact_mul(first, cosine), exact_mul(second, sine));
  x.at[half_dims + index] = exact_add(exact_mul(second, cosine), exact_mul(first, sine));
}
