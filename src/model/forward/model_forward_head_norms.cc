// The part of the forward pass specific to norms over all heads: each rank adds the squares of its
// heads, one sum for each, and the sums of all heads are added on every rank in the same order.
#include "model/forward/model.h"

namespace lockstep {
namespace {

// The heads of queries and keys whose squares a rank adds, and the place of their sums in the
// exchange buffer, rank after rank: (tokens, its heads of queries), then (tokens, those of keys).
struct SquaresPart {
  Range queries;
  Range keys;
  size_t queries_at = 0;
  size_t keys_at = 0;
  size_t end = 0;
};

SquaresPart squares_part(const Cut& cut, int rank, int tokens) {
  const Range queries = cut.heads(rank), keys = cut.first_kv_heads(rank);
  const auto floats = [&](int heads) {
    return static_cast<size_t>(heads) * static_cast<size_t>(tokens);
  };
  const size_t begin = floats(queries.begin + keys.begin);
  const size_t keys_at = begin + floats(queries.size());
  return {queries, keys, begin, keys_at, keys_at + floats(keys.size())};
}

}  // namespace

void Model::norm_joined_heads(int layer, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const Range heads = cut_.heads(rank_), kv_heads = cut_.kv_heads(rank_);
  const int head_dim = config_.head_dim, all = config_.heads + config_.kv_heads;
  const SquaresPart own = squares_part(cut_, rank_, half.tokens);
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
  add_squares(half.query, heads, own.queries, {half.sum, own.queries_at}, squares);
  add_squares(half.key, kv_heads, own.keys, {half.sum, own.keys_at}, key_squares);
  if (!is_alone) exchange_head_squares(half);
  norm(half.query, Role::kQueryNorm, heads.size(), squares, config_.heads);
  norm(half.key, Role::kKeyNorm, kv_heads.size(), key_squares, config_.kv_heads);
}

void Model::exchange_head_squares(BatchHalf& half) {
  queue_turn({.kind = Turn::Kind::kGatherHeadSquares, .half = &half});
  const auto place = [&](size_t from, Range heads, int first) {
    const Slice to = half.head_squares;
    if (heads.size() == 0) return;
    device_.queue(
        CopyColumns{.input = {half.sum, from},
                    .count = half.tokens,
                    .columns = heads.size(),
                    .output = {to.buffer, to.offset + static_cast<size_t>(first + heads.begin)},
                    .output_stride = config_.heads + config_.kv_heads});
  };
  for (int rank = 0; rank < cut_.rank_count(); ++rank) {
    const SquaresPart of = squares_part(cut_, rank, half.tokens);
    place(of.queries_at, of.queries, 0);
    place(of.keys_at, of.keys, config_.heads);
  }
}

Status Model::gather_head_squares(int tokens) {
  part_ends_.clear();
  for (int rank = 0; rank < cut_.rank_count(); ++rank) {
    part_ends_.push_back(squares_part(cut_, rank, tokens).end);
  }
  return gather_parts();
}

}  // namespace lockstep
