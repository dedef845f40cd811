#version 450
#extension GL_GOOGLE_include_directive : require
// MatchStreams: match_stream() in kernels/generic/streams.inl. A workgroup has a stream of a token;
// products are added as the squares in norm.comp. The output may be the keys: it is written once
// all of them have been read.
#include "common.glsl"

layout(local_size_x = 128) in;
PARAMETERS(MatchStreamsParams)

shared float sums[kLanesOfNorm];
shared float shared_factor;

// sigmoid(the root of |g|, with the sign of g).
float opened_by(float g) {
  const uint size_bits = magnitude_bits(g);
  if (size_bits < 0x00800000u) return exact_sigmoid(0.0);  // no normal exponent
  const float size = of_bits(size_bits);
  const float root = exact_sqrt(size < 1e-6 ? 1e-6 : size);
  return exact_sigmoid(g < 0.0 ? exact_sub(0.0, root) : root);
}

void main() {
  const uint lane = gl_LocalInvocationIndex, columns = PARAMS.columns, row = gl_WorkGroupID.x;
  Floats keys = Floats(advance(PARAMS.keys, row, columns * 4u));
  Floats queries = Floats(advance(PARAMS.queries, row, columns * 4u));
  Floats values = Floats(advance(PARAMS.values, row / PARAMS.streams, columns * 4u));
  Floats outputs = Floats(advance(PARAMS.outputs, row, columns * 4u));
  float chain = 0.0;
  for (uint i = lane; i < columns; i += kLanesOfNorm) {
    chain = exact_fma(keys.at[i], queries.at[i], chain);
  }
  sums[lane] = chain;
  barrier();
  for (uint half_count = kLanesOfNorm / 2u; half_count > 0u; half_count /= 2u) {
    if (lane < half_count) sums[lane] = exact_add(sums[lane], sums[lane + half_count]);
    barrier();
  }
  if (lane == 0u) shared_factor = opened_by(exact_div(sums[0], exact_sqrt(float(columns))));
  barrier();
  const float factor = shared_factor;
  for (uint i = lane; i < columns; i += kLanesOfNorm) {
    outputs.at[i] = exact_mul(factor, values.at[i]);
  }
}
