#version 450
#extension GL_GOOGLE_include_directive : require
// PoolKeys: kernels/generic/chosen.inl. An invocation has one column of the pool that a token's
// position completes.
#include "common.glsl"
#include "pages.glsl"

layout(local_size_x = 64) in;
PARAMETERS(PoolKeyParams)

// A stored element of a position's row of the head.
float stored_at(uvec2 head, uint head_dim, uint slot, uint column) {
  const float element = element_at(place_of_element(head, key_index(slot, head_dim, column)), 0u);
  const uint block = slot / kTileRows * blocks_of_head(head_dim) + column / kColumnsOfBlock;
  const uint scale = block * kTileRows + slot % kTileRows;
  return scaled(element, scale_at(place_of_scale(head, scale, head_dim), 0u));
}

void main() {
  const PagesInfo inputs = PARAMS.inputs, pools = PARAMS.pools;
  const uint column = gl_GlobalInvocationID.x, token = gl_WorkGroupID.y, pool = PARAMS.pool;
  const uint columns = pools.head_dim, last = uint(Ints(PARAMS.slot).at[token]);
  if (column >= columns || (last + 1u) % pool != 0u) return;
  const uint page = uint(Ints(PARAMS.page).at[token]), first = last + 1u - pool;
  const uvec2 head = place_of_head(inputs.keys, inputs, page, 0u);
  Floats bias = Floats(PARAMS.bias);
  float most = 0.0;
  for (uint m = 0u; m < pool; ++m) {
    const float stored = stored_at(head, inputs.head_dim, first + m, columns + column);
    const float gate = exact_add(stored, bias.at[m * columns + column]);
    most = m == 0u ? gate : larger(most, gate);
  }
  float sum = 0.0, mean = 0.0;
  for (uint m = 0u; m < pool; ++m) {
    const float stored = stored_at(head, inputs.head_dim, first + m, columns + column);
    const float gate = exact_add(stored, bias.at[m * columns + column]);
    const float e = exact_exp(exact_sub(gate, most));
    sum = exact_add(sum, e);
    mean = exact_fma(e, stored_at(head, inputs.head_dim, first + m, column), mean);
  }
  const uvec2 to = place_of_head(pools.keys, pools, page, 0u);
  Floats(to).at[key_index(last / pool, columns, column)] = exact_div(mean, sum);
}
