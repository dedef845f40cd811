#version 450
#extension GL_GOOGLE_include_directive : require
// IndexScores: kernels/generic/chosen.inl. A workgroup has some keys of one token, an invocation one
// of them: of a position, or of a pool of them.
#include "common.glsl"
#include "pages.glsl"

layout(local_size_x = 64) in;
PARAMETERS(IndexScoresParams)

// As in attention.comp, but without a factor.
float product_of(uvec2 keys, uvec2 query, uint position, uint head_dim) {
  uvec2 at = place_of_element(keys, key_index(position, head_dim, 0u));
  const uint first_scale = position / kTileRows * blocks_of_head(head_dim) * kTileRows;
  uvec2 scales = place_of_scale(keys, first_scale + position % kTileRows, head_dim);
  float product = 0.0;
  for (uint begin = 0u; begin < head_dim; begin += kColumnsOfBlock) {
    const float scale = scale_at(scales, 0u);
    const uint count = min(head_dim - begin, kColumnsOfBlock);
    uint i = 0u;
    for (; i + 8u <= count; i += 8u) {
      [[unroll]] for (uint k = 0u; k < 8u; ++k) {
        const float key = scaled(element_at(at, k * kTileRows), scale);
        product = exact_fma(Floats(query).at[k], key, product);
      }
      at = advance(at, 8u * kTileRows * kElementBytes);
      query = advance(query, 32u);
    }
    for (; i < count; ++i) {
      product = exact_fma(Floats(query).at[0], scaled(element_at(at, 0u), scale), product);
      at = advance(at, kTileRows * kElementBytes);
      query = advance(query, 4u);
    }
    scales = advance(scales, 2u * kTileRows);
  }
  return product;
}

void main() {
  const PagesInfo pages = PARAMS.pages;
  const uint lane = gl_LocalInvocationIndex, index = gl_WorkGroupID.x, token = gl_WorkGroupID.y;
  const uint position = uint(Ints(PARAMS.positions).at[token]);
  const uint own = index * kGroupSize + lane, page_keys = kPositionsOfPage / PARAMS.pool;
  if (position < PARAMS.chosen || own >= (position + 1u) / PARAMS.pool) return;
  Ints list = Ints(advance(PARAMS.page_lists, uint(Ints(PARAMS.list_offsets).at[token]), 4u));
  const uvec2 keys = place_of_head(pages.keys, pages, uint(list.at[own / page_keys]), 0u);
  const uint head_dim = pages.head_dim, heads = PARAMS.heads;
  Floats weights = Floats(advance(PARAMS.weights, token, heads * 4u));
  float score = 0.0;
  for (uint head = 0u; head < heads; ++head) {
    const uvec2 query = advance(PARAMS.query, token * heads + head, head_dim * 4u);
    const float product = larger(product_of(keys, query, own % page_keys, head_dim), 0.0);
    score = exact_fma(weights.at[head], product, score);
  }
  Floats(advance(PARAMS.scores, token, PARAMS.stride * 4u)).at[own] = score;
}
