// The part of the forward pass that only latent attention has: from the normed hidden state to the
// queries and the cached latent.
#include "model/model.h"

namespace lockstep {
namespace {

// Of the norms inside latent attention, which config.json does not name (Hugging Face transformers,
// DeepseekV3RMSNorm).
constexpr float kLatentNormEpsilon = 1e-6f;

// A rank's rows of the latents, and where they lie in the exchange buffer, rank after rank:
// (tokens, its rows of the query's latent), then (tokens, its rows of that of keys and values).
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
  // Rows of keys and values follow all those of the query, so these are the rows of earlier ranks.
  const size_t begin = floats(query.begin + kv.begin);
  const size_t kv_at = begin + floats(query.size());
  return {query, kv, begin, kv_at, kv_at + floats(kv.size())};
}

}  // namespace

// The absorbed form: queries are taken to the latent's space, where one key serves all heads. Its
// rotated part follows the latent: (kv_rank, rope).
Status Model::project_latent(int layer, int tokens) {
  const LayerWeights& weights = layer_weights(layer);
  const LatentConfig& latent = *config_.latent;
  const int heads = cut_.heads(rank_).size(), key = latent.kv_rank + latent.rope;
  const auto norm = [&](Slice x, Role role, int columns, int stride) {
    device_.queue(RmsNorm{x, weights.vector(role), tokens, columns, kLatentNormEpsilon, x, stride});
  };
  const auto rotate = [&](Slice x, int x_stride, int x_offset, int count, Slice y) {
    device_.queue(RotatePairs{x, x_stride, x_offset, buffers_.rope, tokens, count, latent.rope, y,
                              key, latent.kv_rank});
  };
  TRY(project_to_latents(layer, tokens));
  Slice query_input = buffers_.normed;
  if (latent.query_rank > 0) {
    query_input = buffers_.query_latent;
    norm(query_input, Role::kQueryDownNorm, latent.query_rank, latent.query_rank);
  }
  device_.queue(Matmul{weights.matrix(Role::kQuery), query_input, tokens, buffers_.query});
  device_.queue(HeadMatmul{.matrices = &weights.absorb,
                           .input = buffers_.query,
                           .input_stride = config_.head_dim,
                           .tokens = tokens,
                           .output = buffers_.absorbed,
                           .output_stride = key});
  rotate(buffers_.query, config_.head_dim, latent.nope, heads, buffers_.absorbed);
  norm(buffers_.kv_latent, Role::kKvDownNorm, latent.kv_rank, key);
  rotate(buffers_.kv_latent, key, latent.kv_rank, 1, buffers_.kv_latent);
  return Ok{};
}

// Both latents, whole on every rank.
Status Model::project_to_latents(int layer, int tokens) {
  const LayerWeights& weights = layer_weights(layer);
  Slice query = buffers_.query_latent, kv = buffers_.kv_latent;
  if (cut_.cuts_latents()) {
    const LatentPart own = latent_part(cut_, rank_, tokens);
    query = {buffers_.sum, own.query_at};
    kv = {buffers_.sum, own.kv_at};
  }
  if (config_.latent->query_rank > 0) {
    device_.queue(Matmul{weights.matrix(Role::kQueryDown), buffers_.normed, tokens, query});
  }
  device_.queue(Matmul{weights.matrix(Role::kKvDown), buffers_.normed, tokens, kv});
  return cut_.cuts_latents() ? exchange_latents(tokens) : Ok{};
}

Status Model::exchange_latents(int tokens) {
  const LatentConfig& latent = *config_.latent;
  part_ends_.clear();
  for (int rank = 0; rank < cut_.rank_count(); ++rank) {
    part_ends_.push_back(latent_part(cut_, rank, tokens).end);
  }
  TRY(gather_parts());
  const auto place = [&](size_t from, Range rows, Slice to, int stride) {
    if (rows.size() == 0) return;
    device_.queue(CopyColumns{.input = {buffers_.sum, from},
                              .count = tokens,
                              .columns = rows.size(),
                              .output = {to.buffer, to.offset + static_cast<size_t>(rows.begin)},
                              .output_stride = stride});
  };
  for (int rank = 0; rank < cut_.rank_count(); ++rank) {
    const LatentPart part = latent_part(cut_, rank, tokens);
    place(part.query_at, part.query, buffers_.query_latent, latent.query_rank);
    place(part.kv_at, part.kv, buffers_.kv_latent, latent.kv_rank + latent.rope);
  }
  return Ok{};
}

}  // namespace lockstep
