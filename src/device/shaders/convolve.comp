#version 450
#extension GL_GOOGLE_include_directive : require
// Convolve: kernels/generic/recurrent.inl. An invocation has one channel of all tokens.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(ConvolveParams)

void main() {
  const uint channel = gl_GlobalInvocationID.x, channels = PARAMS.channels;
  if (channel >= channels) return;
  const uint past = (PARAMS.taps - 1u) * PARAMS.dilation, state_bytes = PARAMS.states.state_bytes;
  Floats weights = Floats(PARAMS.weights);
  for (uint token = 0u; token < PARAMS.states.tokens; ++token) {
    const int from = Ints(PARAMS.states.from).at[token], to = Ints(PARAMS.states.to).at[token];
    Floats before = Floats(advance(PARAMS.states.memory, uint(max(from, 0)), state_bytes));
    Floats after = Floats(advance(PARAMS.states.memory, uint(to), state_bytes));
    float sum = 0.0;
    uint weight = channel, next = 0u;  // the next tap's
    for (uint place = 0u; place <= past; ++place) {
      const uint at = place * channels + channel;
      float x = 0.0;
      if (place == past) {
        x = Floats(PARAMS.x).at[token * channels + channel];
      } else if (from >= 0) {
        x = before.at[at];
      }
      if (place == next) {
        sum = exact_fma(weights.at[weight], x, sum);
        weight += channels;
        next += PARAMS.dilation;
      }
      if (place > 0u) after.at[at - channels] = x;
    }
    Floats(PARAMS.y).at[token * channels + channel] = exact_mul(sum, exact_sigmoid(sum));
  }
}
