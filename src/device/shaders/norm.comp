#version 450
#extension GL_GOOGLE_include_directive : require
// RmsNorm and AddRmsNorm: kernels/generic/layers.inl. A workgroup norms one row; squares are added
// in kLanesOfNorm lanes and those in a tree, halves first. An invocation reads only the sums that it
// has written.
#include "common.glsl"

const uint kStagedBlocks = kLanesOfNorm;
#include "prepare.glsl"

layout(local_size_x = 128) in;
layout(constant_id = 12) const uint kAdds = 0u;
// The form of the blocks that it also makes of its result; plain: none.
layout(constant_id = 13) const uint kForm = kPlainInput;
// Rows of the weight, which rows of x take in turn; 0: one.
layout(constant_id = 14) const uint kWeights = 0u;
PARAMETERS(NormParams)

shared float squares[kLanesOfNorm];
shared float shared_scale;

void main() {
  const uint lane = gl_LocalInvocationIndex, columns = PARAMS.columns;
  const uint row = gl_WorkGroupID.x;
  Floats x = Floats(advance(PARAMS.x, row, PARAMS.stride * 4u));
  Floats sum = Floats(advance(PARAMS.sum, row, PARAMS.stride * 4u));
  Floats y = Floats(advance(PARAMS.y, row, PARAMS.stride * 4u));
  float chain = 0.0;
  for (uint i = lane; i < columns; i += kLanesOfNorm) {
    float value = x.at[i];
    if (kAdds == 1u) {
      value = exact_add(sum.at[i], value);
      if (!is_none(PARAMS.bias)) value = exact_add(value, Floats(PARAMS.bias).at[i]);
      sum.at[i] = value;
    }
    chain = exact_fma(value, value, chain);
  }
  squares[lane] = chain;
  barrier();
  for (uint half_count = kLanesOfNorm / 2u; half_count > 0u; half_count /= 2u) {
    if (lane < half_count) squares[lane] = exact_add(squares[lane], squares[lane + half_count]);
    barrier();
  }
  if (lane == 0u) {
    const float mean = exact_div(squares[0], float(columns));
    shared_scale = exact_div(1.0, exact_sqrt(exact_add(mean, PARAMS.epsilon)));
  }
  barrier();
  const float scale = shared_scale;
  Floats weight = Floats(PARAMS.weight);
  if (kWeights > 0u) weight = Floats(advance(PARAMS.weight, row % kWeights, columns * 4u));
  if (kForm == kPlainInput) {
    for (uint i = lane; i < columns; i += kLanesOfNorm) {
      const float value = kAdds == 1u ? sum.at[i] : x.at[i];
      y.at[i] = exact_mul(exact_mul(value, scale), weight.at[i]);
    }
    return;
  }
  const MatrixInfo m = Matrices(PARAMS.prepared.matrix).at;
  for (uint first = 0u; first < m.block_count; first += kStagedBlocks) {
    const BlockRange range = staged_blocks(m, first);
    uint i = range.column_begin / kLanesOfNorm * kLanesOfNorm + lane;
    if (i < range.column_begin) i += kLanesOfNorm;
    for (; i < range.column_end; i += kLanesOfNorm) {
      const float value = kAdds == 1u ? sum.at[i] : x.at[i];
      const float normed = exact_mul(exact_mul(value, scale), weight.at[i]);
      y.at[i] = normed;
      staged[staged_at(i - range.column_begin)] = normed;
    }
    barrier();
    prepare_range(kForm, m, range, lane, PARAMS.prepared.blocks, row);
    barrier();
  }
}
