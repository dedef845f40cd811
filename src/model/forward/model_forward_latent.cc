// The part of the forward pass specific to latent attention: from the normed hidden state to the
// queries and the cached latent.
#include "model/forward/model.h"

namespace lockstep {
namespace {

// A rank's rows of the query's latent, and of the keys' and values'.
GatheredPair latents_of(const Cut& cut, int rank, int tokens) {
  return gathered_pair(cut.query_latent(rank), cut.kv_latent(rank), tokens);
}

}  // namespace

// The absorbed form: queries are mapped to the latent's space, where one key serves all heads. The
// rotated part follows the latent: (kv_rank, rope).
void Model::project_latent(int layer, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const LatentConfig& latent = config_.latent;
  const int heads = cut_.heads(rank_).size(), key = latent.kv_rank + latent.rope;
  const auto norm = [&](Slice x, Role role, int columns, int stride) {
    device_.queue(
        RmsNorm{x, weights.vector(role), half.tokens, columns, latent.norm_epsilon, x, stride});
  };
  const auto rotate = [&](Slice x, int x_stride, int x_offset, int count, Slice y) {
    if (latent.rope == 0) return;
    device_.queue(RotatePairs{x, x_stride, x_offset, half.rope, half.tokens, count, latent.rope, y,
                              key, latent.kv_rank});
  };
  project_to_latents(layer, half);
  Slice query_input = half.normed;
  if (latent.query_rank > 0) {
    query_input = half.query_latent;
    norm(query_input, Role::kQueryDownNorm, latent.query_rank, latent.query_rank);
  }
  device_.queue(Matmul{query_input,
                       half.tokens,
                       {{weights.matrix(Role::kQuery), half.query},
                        {weights.matrix(Role::kIndexQuery), half.index_query}},
                       is_choosing(layer) ? 2 : 1});
  device_.queue(HeadMatmul{.matrices = &weights.absorb,
                           .input = half.query,
                           .input_stride = config_.head_dim,
                           .tokens = half.tokens,
                           .output = half.absorbed,
                           .output_stride = key});
  rotate(half.query, config_.head_dim, latent.nope, heads, half.absorbed);
  norm(half.kv_latent, Role::kKvDownNorm, latent.kv_rank, key);
  rotate(half.kv_latent, key, latent.kv_rank, 1, half.kv_latent);
}

// Both latents, whole on every rank.
void Model::project_to_latents(int layer, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  Slice query = half.query_latent, kv = half.kv_latent;
  if (cut_.cuts_latents()) {
    const GatheredPair own = latents_of(cut_, rank_, half.tokens);
    query = {half.sum, own.first_at};
    kv = {half.sum, own.second_at};
  }
  Matmul products{half.normed, half.tokens, {{weights.matrix(Role::kKvDown), kv}}};
  if (config_.latent.query_rank > 0) {
    products.products[products.count++] = {weights.matrix(Role::kQueryDown), query};
  }
  device_.queue(products);
  if (!cut_.cuts_latents()) return;
  const LatentConfig& latent = config_.latent;
  exchange_pair(latents_of, half, {half.query_latent, latent.query_rank},
                {half.kv_latent, latent.kv_rank + latent.rope});
}

}  // namespace lockstep
