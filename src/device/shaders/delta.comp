#version 450
#extension GL_GOOGLE_include_directive : require
// DeltaRule: kernels/generic/recurrent.inl. An invocation has one column of a head's state, of all
// tokens.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(DeltaParams)

void main() {
  const uint column = gl_GlobalInvocationID.x, head = gl_WorkGroupID.y;
  const uint rows = PARAMS.key_dim, columns = PARAMS.value_dim, decays = PARAMS.decays;
  if (column >= columns) return;
  const uint key_head = head / (PARAMS.value_heads / PARAMS.key_heads);
  const uint of_head = head * rows * columns + column, state_bytes = PARAMS.states.state_bytes;
  Floats query = Floats(PARAMS.query), key = Floats(PARAMS.key), decay = Floats(PARAMS.decay);
  for (uint token = 0u; token < PARAMS.states.tokens; ++token) {
    const int from = Ints(PARAMS.states.from).at[token], to = Ints(PARAMS.states.to).at[token];
    Floats before = Floats(advance(PARAMS.states.memory, uint(max(from, 0)), state_bytes));
    Floats after = Floats(advance(PARAMS.states.memory, uint(to), state_bytes));
    const uint keys = (token * PARAMS.key_heads + key_head) * rows;
    const uint values = token * PARAMS.value_heads + head;
    float change = 0.0;
    for (uint row = 0u; from >= 0 && row < rows; ++row) {
      const float factor = decay.at[values * decays + (decays == 1u ? 0u : row)];
      const float old = exact_mul(before.at[of_head + row * columns], factor);
      change = exact_fma(old, key.at[keys + row], change);
    }
    change = exact_sub(Floats(PARAMS.value).at[values * columns + column], change);
    change = exact_mul(change, Floats(PARAMS.rate).at[values]);
    float sum = 0.0;
    for (uint row = 0u; row < rows; ++row) {
      const uint at = of_head + row * columns;
      const float factor = decay.at[values * decays + (decays == 1u ? 0u : row)];
      const float old = from >= 0 ? exact_mul(before.at[at], factor) : 0.0;
      const float state = exact_fma(key.at[keys + row], change, old);
      after.at[at] = state;
      sum = exact_fma(state, query.at[keys + row], sum);
    }
    Floats(PARAMS.outputs).at[values * columns + column] = sum;
  }
}
