#version 450
#extension GL_GOOGLE_include_directive : require
// Joins gates and ups: silu_mul and clamped_swiglu in kernels/generic/layers.inl, with the experts'
// biases before and their weights after.
#include "common.glsl"

const uint kStagedBlocks = kBlocksOfActivate;
#include "prepare.glsl"

layout(local_size_x = 64) in;
// The form of the blocks that it also makes of its result; plain: none.
layout(constant_id = 13) const uint kForm = kPlainInput;
PARAMETERS(ActivateParams)

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

float activated(uint row, uint column) {
  const uint columns = PARAMS.columns;
  float gate = Floats(advance(PARAMS.gate, row, columns * 4u)).at[column];
  float up = Floats(advance(PARAMS.up, row, PARAMS.up_stride * 4u)).at[column];
  if (!is_none(PARAMS.gate_bias)) {
    const uint expert = uint(Ints(PARAMS.chosen).at[row]);
    gate = exact_add(gate, Floats(advance(PARAMS.gate_bias, expert, columns * 4u)).at[column]);
    up = exact_add(up, Floats(advance(PARAMS.up_bias, expert, columns * 4u)).at[column]);
  }
  const bool is_clipped = PARAMS.activation == kActivateClipped;
  const bool is_clamped = PARAMS.activation == kActivateClamped;
  if (is_clipped || is_clamped) limit_both(gate, up, PARAMS.limit);
  float joined = 0.0;
  // One call for all, so that a workgroup's code has fewer exponentials.
  const bool is_sigmoid = PARAMS.activation == kActivateSigmoid;
  if (is_sigmoid || is_clipped || PARAMS.activation == kActivateSilu) {
    joined = opened(is_sigmoid ? 1.0 : gate, gate, up);
  }
  if (is_clamped) joined = clamped_swiglu(gate, up);
  if (PARAMS.activation == kActivateGelu) joined = gelu_mul(gate, up);
  if (!is_none(PARAMS.weights)) joined = exact_mul(joined, Floats(PARAMS.weights).at[row]);
  Floats(advance(PARAMS.outputs, row, columns * 4u)).at[column] = joined;
  return joined;
}

void main() {
  const uint row = gl_WorkGroupID.y;
  if (kForm == kPlainInput) {
    if (gl_GlobalInvocationID.x < PARAMS.columns) activated(row, gl_GlobalInvocationID.x);
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  const MatrixInfo m = Matrices(PARAMS.prepared.matrix).at;
  const BlockRange range = staged_blocks(m, gl_WorkGroupID.x * kStagedBlocks);
  for (uint i = range.column_begin + lane; i < range.column_end; i += kGroupSize) {
    staged[staged_at(i - range.column_begin)] = activated(row, i);
  }
  barrier();
  prepare_range(kForm, m, range, lane, PARAMS.prepared.blocks, row);
}
