#version 450
#extension GL_GOOGLE_include_directive : require
// RotatePairs: rotates neighbours (2i, 2i + 1); x and y may be the same place.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(RotateParams)

void main() {
  const uint half_dims = PARAMS.half_dims;
  const uint index = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (index >= half_dims) return;
  Floats x = Floats(advance(PARAMS.x, row, PARAMS.x_stride * 4u));
  Floats y = Floats(advance(PARAMS.y, row, PARAMS.y_stride * 4u));
  Floats table = Floats(advance(PARAMS.table, row / PARAMS.heads, 2u * half_dims * 4u));
  const float cosine = table.at[index], sine = table.at[half_dims + index];
  const uint from = PARAMS.x_offset + 2u * index, to = PARAMS.y_offset + 2u * index;
  const float first = x.at[from], second = x.at[from + 1u];
  y.at[to] = exact_sub(exact_mul(first, cosine), exact_mul(second, sine));
  y.at[to + 1u] = exact_add(exact_mul(second, cosine), exact_mul(first, sine));
}
