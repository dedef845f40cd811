#version 450
#extension GL_GOOGLE_include_directive : require
// Compress: kernels/generic/compressed.inl. An invocation has one column of an entry.
#include "common.glsl"
#include "pages.glsl"

layout(local_size_x = 64) in;
// 1: rows have no gates, and there is no bias.
layout(constant_id = 11) const uint kIsPlain = 0u;
PARAMETERS(CompressParams)

// The entry of the workgroup.
uint last;  // position
Ints list;  // of its pages

uint width_of_row() { return PARAMS.overlaps != 0u ? 2u * PARAMS.columns : PARAMS.columns; }

// A stored element of a position's row.
float stored_at(uint position, uint column) {
  const PagesInfo inputs = PARAMS.inputs;
  const uint head_dim = inputs.head_dim, slot = position % kPositionsOfPage;
  const uint page = uint(list.at[position / kPositionsOfPage]);
  const uvec2 head = place_of_head(inputs.values, inputs, page, 0u);
  const float element = element_at(place_of_element(head, value_index(slot, head_dim, column)), 0u);
  const uint block = slot * blocks_of_head(head_dim) + column / kColumnsOfBlock;
  return scaled(element, scale_at(place_of_scale(head, block, head_dim), 0u));
}

// Where a position's part in a column of the entry is: its own pool has the second columns, if pools
// overlap.
uint column_for(uint position, uint column) {
  const bool is_second = PARAMS.overlaps != 0u && position + PARAMS.pool > last;
  return is_second ? PARAMS.columns + column : column;
}

float gate_at(uint position, uint column) {
  const uint width = width_of_row(), from = column_for(position, column);
  const float bias = Floats(PARAMS.bias).at[position % PARAMS.pool * width + from];
  return exact_add(stored_at(position, width + from), bias);
}

// Without gates.
float plain_mean(uint begin, uint column) {
  float sum = stored_at(begin, column);
  for (uint at = begin + 1u; at <= last; ++at) sum = exact_add(sum, stored_at(at, column));
  return exact_div(sum, float(PARAMS.pool));
}

float weighted_mean(uint begin, uint column) {
  float most = gate_at(begin, column);
  for (uint at = begin + 1u; at <= last; ++at) most = larger(most, gate_at(at, column));
  float sum = 0.0, mean = 0.0;
  for (uint at = begin; at <= last; ++at) {
    const float e = exact_exp(exact_sub(gate_at(at, column), most));
    sum = exact_add(sum, e);
    mean = exact_fma(e, stored_at(at, column_for(at, column)), mean);
  }
  return exact_div(mean, sum);
}

void main() {
  const uint column = gl_GlobalInvocationID.x, entry = gl_WorkGroupID.y, pool = PARAMS.pool;
  const uint columns = PARAMS.columns;
  if (column >= columns) return;
  last = uint(Ints(PARAMS.last).at[entry]);
  list = Ints(advance(PARAMS.page_lists, uint(Ints(PARAMS.list_offsets).at[entry]), 4u));
  const bool has_before = PARAMS.overlaps != 0u && last + 1u >= 2u * pool;
  const uint begin = last + 1u - (has_before ? 2u : 1u) * pool;
  Floats outputs = Floats(advance(PARAMS.outputs, entry, columns * 4u));
  outputs.at[column] = kIsPlain == 1u ? plain_mean(begin, column) : weighted_mean(begin, column);
}
