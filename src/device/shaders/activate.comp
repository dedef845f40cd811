#version 450
#extension GL_GOOGLE_include_directive : require
// Joins gates and ups, with the experts' biases before and their weights after.
#include "common.glsl"

const uint kStagedBlocks = kBlocksOfActivate;
#include "prepare.glsl"
#include "activate.glsl"

layout(local_size_x = 64) in;
// The form of the blocks that it also makes of its result; plain: none.
layout(constant_id = 13) const uint kForm = kPlainInput;
PARAMETERS(ActivateParams)

float joined_at(uint row, uint column) {
  const uint columns = PARAMS.join.columns;
  const float gate = Floats(advance(PARAMS.gate, row, columns * 4u)).at[column];
  const float up = Floats(advance(PARAMS.up, row, PARAMS.up_stride * 4u)).at[column];
  const float joined = activated(PARAMS.join, PARAMS.chosen, row, column, gate, up);
  Floats(advance(PARAMS.outputs, row, columns * 4u)).at[column] = joined;
  return joined;
}

void main() {
  const uint row = gl_WorkGroupID.y;
  if (kForm == kPlainInput) {
    if (gl_GlobalInvocationID.x < PARAMS.join.columns) joined_at(row, gl_GlobalInvocationID.x);
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  const MatrixInfo m = Matrices(PARAMS.prepared.matrix).at;
  const BlockRange range = staged_blocks(m, gl_WorkGroupID.x * kStagedBlocks);
  for (uint i = range.column_begin + lane; i < range.column_end; i += kGroupSize) {
    staged[staged_at(i - range.column_begin)] = joined_at(row, i);
  }
  barrier();
  prepare_range(kForm, m, range, lane, PARAMS.prepared.blocks, row);
}
