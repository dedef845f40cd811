#version 450
#extension GL_GOOGLE_include_directive : require
// Everything between the products and attention: biases, norms of heads, rotation, scaling of the
// query, and the store of keys and values. A workgroup takes one head of one token: those of the
// query first, then those of keys and values.
#include "common.glsl"
#include "pages.glsl"
#include "row.glsl"

layout(local_size_x = 64) in;
PARAMETERS(HeadsParams)

void rotate_row(uint lane, uint token) {
  const uint half_dims = PARAMS.half_dims;
  Floats table = Floats(advance(PARAMS.table, token, 2u * half_dims * 4u));
  for (uint i = lane; i < half_dims; i += kGroupSize) {
    const float cosine = table.at[i], sine = table.at[half_dims + i];
    const float first = row[i], second = row[half_dims + i];
    row[i] = exact_sub(exact_mul(first, cosine), exact_mul(second, sine));
    row[half_dims + i] = exact_add(exact_mul(second, cosine), exact_mul(first, sine));
  }
  barrier();
}

// A head's bias is added while its row is loaded.
void load_row(uint lane, Floats x, uint columns, uvec2 bias, uint head) {
  for (uint i = lane; i < columns; i += kGroupSize) {
    float value = x.at[i];
    if (!is_none(bias)) value = exact_add(value, Floats(bias).at[head * columns + i]);
    row[i] = value;
  }
  barrier();
}

void main() {
  const PagesInfo pages = PARAMS.pages;
  const uint lane = gl_LocalInvocationIndex, token = gl_WorkGroupID.y;
  const uint heads = PARAMS.heads, head_dim = PARAMS.head_dim, value_dim = pages.value_dim;
  const bool is_query = gl_WorkGroupID.x < heads;
  const uint head = is_query ? gl_WorkGroupID.x : gl_WorkGroupID.x - heads;
  const uint of_token = is_query ? token * heads + head : token * pages.kv_heads + head;
  Floats x = Floats(advance(is_query ? PARAMS.query : PARAMS.key, of_token, head_dim * 4u));
  load_row(lane, x, head_dim, is_query ? PARAMS.query_bias : PARAMS.key_bias, head);
  const uvec2 norm = is_query ? PARAMS.query_norm : PARAMS.key_norm;
  if (!is_none(norm)) {
    norm_row(lane, head_dim, norm, is_query ? PARAMS.query_epsilon : PARAMS.key_epsilon);
  }
  rotate_row(lane, token);
  const bool is_scaled = is_query && !is_none(PARAMS.factors);
  const float factor = is_scaled ? Floats(PARAMS.factors).at[token] : 1.0;
  for (uint i = lane; i < head_dim; i += kGroupSize) {
    x.at[i] = is_scaled ? exact_mul(row[i], factor) : row[i];
  }
  if (is_query) return;
  const uint page = uint(Ints(PARAMS.page).at[token]), slot = uint(Ints(PARAMS.slot).at[token]);
  store_row(lane, head_dim, head_dim, place_of_head(pages.keys, pages, page, head), slot, false);
  barrier();
  Floats value = Floats(advance(PARAMS.value, of_token, value_dim * 4u));
  load_row(lane, value, value_dim, PARAMS.value_bias, head);
  if (!is_none(PARAMS.value_bias)) {
    for (uint i = lane; i < value_dim; i += kGroupSize) value.at[i] = row[i];
  }
  store_row(lane, value_dim, head_dim, place_of_head(pages.values, pages, page, head), slot, true);
}
