#version 450
#extension GL_GOOGLE_include_directive : require
// Rows of a packed matrix as floats: kernels/generic/embed.inl. An invocation expands a block, or as
// many columns.
#include "common.glsl"
#include "matrix.glsl"

layout(local_size_x = 64) in;
PARAMETERS(EmbedParams)

void main() {
  const uint index = gl_GlobalInvocationID.x, token = gl_WorkGroupID.y;
  const int matrix_row = Ints(PARAMS.rows).at[token];
  if (matrix_row < 0) return;
  uint row = uint(matrix_row);
  uvec2 matrix = PARAMS.matrix;
  if (!is_none(PARAMS.parts)) {
    const uint rows = Matrices(matrix).at.rows, part = row / rows;
    row -= part * rows;
    matrix = Addresses(PARAMS.parts).at[part];
  }
  const MatrixInfo m = Matrices(matrix).at;
  RowPlace place = place_of_row(m, row / kTileRows, row % kTileRows);
  Floats to = Floats(advance(PARAMS.outputs, token, PARAMS.stride * 4u));
  const uint codes = codes_of(m), scales = scales_of(m);
  if (is_by_column(codes)) {
    const uint begin = index * kColumnsOfBlock, end = min(begin + kColumnsOfBlock, m.columns);
    for (uint column = begin; column < end; ++column) {
      to.at[column] = weight_at(codes, place_of_column(m, place, column), 0u, place.row);
    }
    return;
  }
  if (index >= m.block_count) return;
  const BlockInfo block = Blocks(m.blocks).at[index];
  Words words = codes_of_block(m, place, index);
  RowScale by[2];
  by[0] = scale_of(m, place, block, index, 0u);
  by[1] = by[0];
  if (has_halves(scales)) by[1] = scale_of(m, place, block, index, 1u);
  for (uint i = 0u; i < block.columns; ++i) {
    uint code = (quad_of(codes, words, i / 4u) >> (8u * (i & 3u))) & 255u;
    if (codes == kTable4) code = table_at(m, code);
    const float weight = codes == kFp8 ? exact_mul(of_fp8(code), 256.0) : float(int(code) - m.code_offset);
    const RowScale with = by[i / 16u];
    float value;
    switch (formula_of(scales)) {
      case kByScale: value = exact_mul(with.scale, weight); break;
      case kByBias: value = exact_fma(with.scale, weight, with.bias); break;
      default: value = exact_mul(with.scale, exact_add(weight, with.bias)); break;
    }
    to.at[block.column_begin + i] = value;
  }
}
