#version 450
#extension GL_GOOGLE_include_directive : require
// Convolve: kernels/generic/recurrent.inl. An invocation has one channel of all tokens.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(ConvolveParams)

void main() {
  const uint channel = gl_GlobalInvocationID.x, channels = PARAMS.channels;
  if (channel >= channels) return;
  const uint past = PARAMS.taps - 1u, state_bytes = PARAMS.states.state_bytes;
  Floats weights = Floats(PARAMS.weights);
  for (uint token = 0u; token < PARAMS.states.tokens; ++token) {
    const int from = Ints(PARAMS.states.from).at[token], to = Ints(PARAMS.states.to).at[token];
    Floats before = Floats(advance(PARAMS.states.memory, uint(max(from, 0)), state_bytes));
    Floats after = Floats(advance(PARAMS.states.memory, uint(to), state_bytes));
    float sum = 0.0;
    for (uint tap = 0u; tap <= past; ++tap) {
      const uint at = tap * channels + channel;
      float x = 0.0;
      if (tap == past) {
        x = Floats(PARAMS.x).at[token * channels + channel];
      } else if (from >= 0) {
        x = before.at[at];
      }
      sum = exact_fma(weights.at[at], x, sum);
      if (tap > 0u) after.at[at - channels] = x;
    }
    Floats(PARAMS.y).at[token * channels + channel] = exact_mul(sum, exact_sigmoid(sum));
  }
}
