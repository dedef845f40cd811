// The part of the forward pass specific to norms over all heads: each rank adds the squares of its
// heads, one sum for each, and the sums of all heads are added on every rank in the same order.
#include "model/forward/model.h"

namespace lockstep {
namespace {

// The heads of queries and of keys whose squares a rank adds.
GatheredPair squares_of(const Cut& cut, int rank, int tokens) {
  return gathered_pair(cut.heads(rank), cut.first_kv_heads(rank), tokens);
}

}  // namespace

void Model::norm_joined_heads(int layer, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const Range heads = cut_.heads(rank_), kv_heads = cut_.kv_heads(rank_);
  const int head_dim = config_.head_dim, all = config_.heads + config_.kv_heads;
  const GatheredPair own = squares_of(cut_, rank_, half.tokens);
  const bool is_alone = cut_.rank_count() == 1;
  const Slice squares = half.head_squares;
  const Slice key_squares{squares.buffer, squares.offset + static_cast<size_t>(config_.heads)};
  const auto add_squares = [&](Slice x, Range has, Range adds, Slice to, Slice alone) {
    const auto skipped = static_cast<size_t>((adds.begin - has.begin) * head_dim);
    device_.queue(HeadSquares{.x = {x.buffer, x.offset + skipped},
                              .x_stride = has.size() * head_dim,
                              .tokens = half.tokens,
                              .heads = adds.size(),
                              .head_dim = head_dim,
                              .output = is_alone ? alone : to,
                              .output_stride = is_alone ? all : adds.size()});
  };
  const auto norm = [&](Slice x, Role role, int own_heads, Slice of, int all_heads) {
    device_.queue(NormHeads{.x = x,
                            .weight = weights.vector(role),
                            .tokens = half.tokens,
                            .heads = own_heads,
                            .head_dim = head_dim,
                            .squares = of,
                            .squares_stride = all,
                            .all_heads = all_heads,
                            .epsilon = config_.norm_epsilon});
  };
  add_squares(half.query, heads, own.first, {half.sum, own.first_at}, squares);
  add_squares(half.key, kv_heads, own.second, {half.sum, own.second_at}, key_squares);
  if (!is_alone) exchange_pair(squares_of, half, {squares, all}, {key_squares, all});
  norm(half.query, Role::kQueryNorm, heads.size(), squares, config_.heads);
  norm(half.key, Role::kKeyNorm, kv_heads.size(), key_squares, config_.kv_heads);
}

}  // namespace lockstep
