#version 450
#extension GL_GOOGLE_include_directive : require
// Latent attention between its products and attention: rotates the end of each query head into its
// place next to the absorbed query; norms the latent, rotates its end and stores it. A workgroup
// takes one head of one token, or its latent, which comes last.
#include "common.glsl"
#include "pages.glsl"
#include "row.glsl"

layout(local_size_x = 64) in;
PARAMETERS(LatentParams)

void rotate_query(uint lane, uint head, uint token) {
  const uint half_dims = PARAMS.half_dims, index = token * PARAMS.heads + head;
  Floats x = Floats(advance(PARAMS.query, index, PARAMS.x_stride * 4u));
  Floats y = Floats(advance(PARAMS.absorbed, index, PARAMS.y_stride * 4u));
  Floats table = Floats(advance(PARAMS.table, token, 2u * half_dims * 4u));
  for (uint i = lane; i < half_dims; i += kGroupSize) {
    const float cosine = table.at[i], sine = table.at[half_dims + i];
    const float first = x.at[PARAMS.x_offset + 2u * i];
    const float second = x.at[PARAMS.x_offset + 2u * i + 1u];
    const uint to = PARAMS.y_offset + 2u * i;
    y.at[to] = exact_sub(exact_mul(first, cosine), exact_mul(second, sine));
    y.at[to + 1u] = exact_add(exact_mul(second, cosine), exact_mul(first, sine));
  }
}

void rotate_end(uint lane, uint token) {
  const uint half_dims = PARAMS.half_dims;
  Floats table = Floats(advance(PARAMS.table, token, 2u * half_dims * 4u));
  for (uint i = lane; i < half_dims; i += kGroupSize) {
    const float cosine = table.at[i], sine = table.at[half_dims + i];
    const uint at = PARAMS.columns + 2u * i;
    const float first = row[at], second = row[at + 1u];
    row[at] = exact_sub(exact_mul(first, cosine), exact_mul(second, sine));
    row[at + 1u] = exact_add(exact_mul(second, cosine), exact_mul(first, sine));
  }
  barrier();
}

void main() {
  const PagesInfo pages = PARAMS.pages;
  const uint lane = gl_LocalInvocationIndex, token = gl_WorkGroupID.y;
  if (gl_WorkGroupID.x < PARAMS.heads) {
    rotate_query(lane, gl_WorkGroupID.x, token);
    return;
  }
  const uint head_dim = pages.head_dim;
  Floats latent = Floats(advance(PARAMS.latent, token, head_dim * 4u));
  for (uint i = lane; i < head_dim; i += kGroupSize) row[i] = latent.at[i];
  barrier();
  norm_row(lane, PARAMS.columns, PARAMS.weight, PARAMS.epsilon);
  rotate_end(lane, token);
  for (uint i = lane; i < head_dim; i += kGroupSize) latent.at[i] = row[i];
  const uint page = uint(Ints(PARAMS.page).at[token]), slot = uint(Ints(PARAMS.slot).at[token]);
  store_row(lane, head_dim, head_dim, place_of_head(pages.keys, pages, page, 0u), slot, false);
  store_row(lane, pages.value_dim, head_dim, place_of_head(pages.values, pages, page, 0u), slot,
            true);
}
