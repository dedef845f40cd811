#version 450
#extension GL_GOOGLE_include_directive : require
// Activations as the blocks of a quantised matrix: kernels/generic/prepare.inl. An invocation makes
// one block of one row.
#include "common.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 12) const uint kInput = kIntegerInput;
PARAMETERS(PrepareParams)

float column_of(Floats x, BlockInfo block, uint column) {
  const float value = x.at[block.column_begin + min(column, block.columns - 1u)];
  return column < block.columns ? value : 0.0;
}

// Sixteen columns added as sum_lanes does: i and i + 8, then i + 4, i + 2, i + 1.
float sum_of_sixteen(Floats x, BlockInfo block, uint first) {
  float lanes[16];
  [[unroll]] for (uint i = 0u; i < 16u; ++i) lanes[i] = column_of(x, block, first + i);
  [[unroll]] for (uint half_count = 8u; half_count > 0u; half_count /= 2u) {
    [[unroll]] for (uint i = 0u; i < half_count; ++i) {
      lanes[i] = exact_add(lanes[i], lanes[i + half_count]);
    }
  }
  return lanes[0];
}

void prepare_floats(Floats x, BlockInfo block, Words to) {
  for (uint i = 0u; i < kColumnsOfBlock; ++i) to.at[i] = bits_of(column_of(x, block, i));
  const float low = sum_of_sixteen(x, block, 0u), high = sum_of_sixteen(x, block, 16u);
  to.at[32] = bits_of(exact_add(low, high));
  to.at[33] = bits_of(low);
  to.at[34] = bits_of(high);
  to.at[35] = 0u;
}

void prepare_integers(Floats x, BlockInfo block, Words to) {
  uint most = 0u;
  for (uint i = 0u; i < block.columns; ++i) most = max(most, magnitude_bits(column_of(x, block, i)));
  const bool is_number = most < kInfinityBits;
  if (!is_number || most < kBlockLeastBits) {
    for (uint i = 0u; i < kWordsOfBlock8; ++i) to.at[i] = 0u;
    if (!is_number) to.at[8] = most;
    return;
  }
  const float largest = of_bits(most), factor = exact_div(127.0, largest);
  int sums[2] = int[2](0, 0);
  for (uint k = 0u; k < 8u; ++k) {
    uint word = 0u;
    for (uint i = 0u; i < 4u; ++i) {
      const int code = rounded(exact_mul(column_of(x, block, 4u * k + i), factor));
      word |= (uint(code) & 255u) << (8u * i);
      sums[k / 4u] += code;
    }
    to.at[k] = word;
  }
  to.at[8] = bits_of(exact_div(largest, 127.0));
  to.at[9] = uint(sums[0] + sums[1]);
  to.at[10] = uint(sums[0]);
  to.at[11] = uint(sums[1]);
}

void main() {
  const MatrixInfo m = Matrices(PARAMS.matrix).at;
  const uint block = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (block >= m.block_count) return;
  const BlockInfo info = Blocks(m.blocks).at[block];
  Floats x = Floats(advance(PARAMS.x, row, PARAMS.stride * 4u));
  const uint words = kInput == kIntegerInput ? kWordsOfBlock8 : kWordsOfBlockF;
  Words to = Words(advance(PARAMS.blocks, row * m.block_count + block, words * 4u));
  if (kInput == kIntegerInput) {
    prepare_integers(x, info, to);
  } else {
    prepare_floats(x, info, to);
  }
}
