#version 450
#extension GL_GOOGLE_include_directive : require
// Activations as the blocks of a quantised matrix. A workgroup makes some blocks of one row.
#include "common.glsl"
const uint kStagedBlocks = kGroupSize;
#include "prepare.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 12) const uint kForm = kIntegerInput;
PARAMETERS(PrepareParams)

void main() {
  const MatrixInfo m = Matrices(PARAMS.prepared.matrix).at;
  const uint lane = gl_LocalInvocationIndex, row = gl_WorkGroupID.y;
  const BlockRange range = staged_blocks(m, gl_WorkGroupID.x * kStagedBlocks);
  Floats x = Floats(advance(PARAMS.x, row, PARAMS.stride * 4u));
  for (uint i = range.column_begin + lane; i < range.column_end; i += kGroupSize) {
    staged[staged_at(i - range.column_begin)] = x.at[i];
  }
  barrier();
  prepare_range(kForm, m, range, lane, PARAMS.prepared.blocks, row);
}
