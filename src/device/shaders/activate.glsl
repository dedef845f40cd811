// silu_mul, clamped_swiglu and their like in kernels/generic/layers.inl, by GateJoin::activation.
float opened(float factor, float gate, float up) {
  return exact_mul(exact_mul(factor, exact_sigmoid(gate)), up);
}
float silu_mul(float gate, float up) { return opened(gate, gate, up); }
// CpuDevice::join.
float gelu_mul(float gate, float up) {
  const float c = exact_add(kSlopeOfGelu, exact_mul(kSquareOfGelu, exact_mul(gate, gate)));
  return silu_mul(exact_mul(gate, c), exact_div(up, c));
}
void limit_both(inout float gate, inout float up, float limit) {
  if (limit < gate) gate = limit;
  if (limit < up) up = limit;
  if (up < -limit) up = -limit;
}
float clamped_swiglu(float gate, float up) {
  const float opened = exact_sigmoid(exact_mul(1.702, gate));
  return exact_mul(exact_add(up, 1.0), exact_mul(gate, opened));
}

float joined_by(uint activation, float limit, float gate, float up) {
  const bool is_clipped = activation == kActivateClipped;
  const bool is_clamped = activation == kActivateClamped;
  if (is_clipped || is_clamped) limit_both(gate, up, limit);
  float joined = 0.0;
  // One call for all, so that a workgroup's code has fewer exponentials.
  const bool is_sigmoid = activation == kActivateSigmoid;
  if (is_sigmoid || is_clipped || activation == kActivateSilu) {
    joined = opened(is_sigmoid ? 1.0 : gate, gate, up);
  }
  if (is_clamped) joined = clamped_swiglu(gate, up);
  if (activation == kActivateGelu) joined = gelu_mul(gate, up);
  return joined;
}

// One column of a row, with the bias of its expert before and the expert's weight after.
float activated(GateJoin join, uvec2 chosen, uint row, uint column, float gate, float up) {
  if (!is_none(join.gate_bias)) {
    const uint expert = uint(Ints(chosen).at[row]);
    gate = exact_add(gate, Floats(advance(join.gate_bias, expert, join.columns * 4u)).at[column]);
    up = exact_add(up, Floats(advance(join.up_bias, expert, join.columns * 4u)).at[column]);
  }
  const float joined = joined_by(join.activation, join.limit, gate, up);
  return is_none(join.weights) ? joined : exact_mul(joined, Floats(join.weights).at[row]);
}
