// The part of the forward pass specific to latent attention: from the normed hidden state to the
// queries and the cached latent.
#include "model/forward/model.h"

namespace lockstep {
namespace {

// A rank's rows of the latents, and their place in the exchange buffer, rank after rank: (tokens,
// its rows of the query's latent), then (tokens, its rows of the keys' and values' latent).
struct LatentPart {
  Range query;
  Range kv;
  size_t query_at = 0;
  size_t kv_at = 0;
  size_t end = 0;
};

LatentPart latent_part(const Cut& cut, int rank, int tokens) {
  const Range query = cut.query_latent(rank), kv = cut.kv_latent(rank);
  const auto floats = [&](int rows) {
    return static_cast<size_t>(rows) * static_cast<size_t>(tokens);
  };
  // Rows of keys and values follow all of the query's, so these are the rows of earlier ranks.
  const size_t begin = floats(query.begin + kv.begin);
  const size_t kv_at = begin + floats(query.size());
  return {query, kv, begin, kv_at, kv_at + floats(kv.size())};
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
    device_.queue(RotatePairs{x, x_stride, x_offset, half.rope, half.tokens, count, latent.rope, y,
                              key, latent.kv_rank});
  };
  project_to_latents(layer, half);
  Slice query_input = half.normed;
  if (latent.query_rank > 0) {
    query_input = half.query_latent;
    norm(query_input, Role::kQueryDownNorm, latent.query_rank, latent.query_rank);
  }
  device_.queue(Matmul{query_input, half.tokens, {{weights.matrix(Role::kQuery), half.query}}});
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
    const LatentPart own = latent_part(cut_, rank_, half.tokens);
    query = {half.sum, own.query_at};
    kv = {half.sum, own.kv_at};
  }
  Matmul products{half.normed, half.tokens, {{weights.matrix(Role::kKvDown), kv}}};
  if (config_.latent.query_rank > 0) {
    products.products[products.count++] = {weights.matrix(Role::kQueryDown), query};
  }
  device_.queue(products);
  if (cut_.cuts_latents()) exchange_latents(half);
}

Status Model::gather_latents(int tokens) {
  part_ends_.clear();
  for (int rank = 0; rank < cut_.rank_count(); ++rank) {
    part_ends_.push_back(latent_part(cut_, rank, tokens).end);
  }
  return gather_parts();
}

void Model::exchange_latents(BatchHalf& half) {
  const LatentConfig& latent = config_.latent;
  queue_turn({.kind = Turn::Kind::kGatherLatents, .half = &half});
  const auto place = [&](size_t from, Range rows, Slice to, int stride) {
    if (rows.size() == 0) return;
    device_.queue(CopyColumns{.input = {half.sum, from},
                              .count = half.tokens,
                              .columns = rows.size(),
                              .output = {to.buffer, to.offset + static_cast<size_t>(rows.begin)},
                              .output_stride = stride});
  };
  for (int rank = 0; rank < cut_.rank_count(); ++rank) {
    const LatentPart of = latent_part(cut_, rank, half.tokens);
    place(of.query_at, of.query, half.query_latent, latent.query_rank);
    place(of.kv_at, of.kv, half.kv_latent, latent.kv_rank + latent.rope);
  }
}

}  // namespace lockstep
