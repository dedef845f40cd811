// The part of the forward pass specific to sparse attention: the index's key of each position, and
// the choice of the positions that attention covers. Every rank computes all heads of the index, so
// all choose alike without an exchange.
#include <algorithm>

#include "model/forward/model.h"

namespace lockstep {

// While no token of a batch has more positions than are chosen, nothing is computed for the choice;
// keys are stored all the same. A layer that shares the choice finds it in the mask.
bool Model::is_choosing(int layer) const {
  return is_sparse_ && config_.layer(layer).has_index();
}

// The first dimensions of each head turn, by the angles of attention; with compressed attention the
// last ones.
void Model::rotate_index(Slice x, int heads, const BatchHalf& half) {
  const int head_dim = config_.indexer.head_dim, dims = config_.indexer.rope;
  if (dims == 0) return;
  const int first = config_.compressed ? head_dim - dims : 0;
  if (config_.indexer.rotates_pairs) {
    device_.queue(
        RotatePairs{x, head_dim, first, half.rope, half.tokens, heads, dims, x, head_dim, first});
  } else {
    device_.queue(Rope{x, half.rope, half.tokens, heads, head_dim, dims / 2});
  }
}

// The weights of the heads have the key's input, and are computed with it if they are needed.
void Model::store_index_key(int layer, const BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const int head_dim = config_.indexer.head_dim;
  const bool has_pools = config_.indexer.pool > 1;
  Matmul products{half.normed, half.tokens, {{weights.matrix(Role::kIndexKey), half.index_key}}};
  const auto add = [&](Role role, Slice output) {
    products.products[products.count++] = {weights.matrix(role), output};
  };
  if (has_pools) add(Role::kIndexPoolGate, half.index_gate);
  if (is_choosing(layer)) add(Role::kIndexWeights, half.index_weights);
  device_.queue(products);
  device_.queue(LayerNorm{.x = half.index_key,
                          .weight = weights.vector(Role::kIndexKeyNorm),
                          .bias = weights.vector(Role::kIndexKeyNormBias),
                          .tokens = half.tokens,
                          .columns = head_dim,
                          .epsilon = kIndexNormEpsilon});
  rotate_index(half.index_key, 1, half);
  if (has_pools) return store_pools(layer, half);
  store_index(state_.indexes[static_cast<size_t>(layer)], half.index_key, half);
}

void Model::store_index(const LayerPages& pages, Slice keys, const BatchHalf& half) {
  device_.queue(StoreKv{.pages = pages,
                        .keys = keys,
                        .values = keys,
                        .keys_stride = pages.head_dim,
                        .values_stride = pages.head_dim,
                        .page = half.page,
                        .slot = half.slot,
                        .tokens = half.tokens});
}

// Two rows of each token side by side.
void Model::join_columns(Slice first, Slice second, int columns, const BatchHalf& half, Slice to) {
  for (const Slice from : {first, second}) {
    device_.queue(CopyColumns{.input = from,
                              .count = half.tokens,
                              .columns = columns,
                              .output = to,
                              .output_stride = 2 * columns});
    to.offset += static_cast<size_t>(columns);
  }
}

// A pool's key is made of what is stored, so that its bits do not depend on how many of its
// positions are in one batch; a pool that a wrong guess completed is made again.
void Model::store_pools(int layer, const BatchHalf& half) {
  const auto index = static_cast<size_t>(layer);
  const int head_dim = config_.indexer.head_dim;
  join_columns(half.index_key, half.index_gate, head_dim, half, half.index_pair);
  store_index(state_.index_inputs[index], half.index_pair, half);
  device_.queue(PoolKeys{.inputs = state_.index_inputs[index],
                         .pools = state_.indexes[index],
                         .bias = layer_weights(layer).vector(Role::kIndexPoolBias),
                         .page = half.page,
                         .slot = half.slot,
                         .tokens = half.tokens,
                         .pool = config_.indexer.pool});
}

void Model::store_key_rows(int layer, const BatchHalf& half) {
  LayerPages pages = state_.layers[static_cast<size_t>(layer)];
  const int columns = pages.kv_heads * pages.head_dim;
  store_rows(pages, half.value, columns, half.page, half);
  pages.values = pages.keys;
  store_rows(pages, half.key, columns, half.page, half);
}

// A block's key is the mean of what is stored of its positions, normed and turned as its first
// position is; a block that a wrong guess completed is made again.
void Model::store_block_index(int layer, const BatchHalf& half) {
  const auto index = static_cast<size_t>(layer);
  const LayerWeights& weights = layer_weights(layer);
  const IndexerConfig& indexer = config_.indexer;
  const bool chooses = is_choosing(layer);
  device_.queue(Matmul{half.normed,
                       half.tokens,
                       {{weights.matrix(Role::kIndexKey), half.index_key},
                        {weights.matrix(Role::kIndexQuery), half.index_query}},
                       chooses ? 2 : 1});
  store_rows(state_.index_inputs[index], half.index_key, indexer.head_dim, half.page, half);
  const auto norm = [&](Slice x, Role role, int rows) {
    device_.queue(RmsNorm{x, weights.vector(role), rows, indexer.head_dim, config_.norm_epsilon, x,
                          indexer.head_dim});
  };
  const EntryBuffers& blocks = entries_of(half, indexer.pool);
  if (blocks.count > 0) {
    device_.queue(Compress{.inputs = state_.index_inputs[index],
                           .last = blocks.last,
                           .page_lists = half.page_lists,
                           .list_offsets = blocks.list_offsets,
                           .entries = blocks.count,
                           .pool = indexer.pool,
                           .columns = indexer.head_dim,
                           .output = half.entry_rows,
                           .has_gates = false});
    norm(half.entry_rows, Role::kIndexKeyNorm, blocks.count);
    device_.queue(
        Rope{half.entry_rows, blocks.rope, blocks.count, 1, indexer.head_dim, indexer.rope / 2});
    store_index_entries(layer, blocks, half);
  }
  if (chooses) norm(half.index_query, Role::kIndexQueryNorm, half.tokens * indexer.heads);
}

void Model::store_index_entries(int layer, const EntryBuffers& entries, const BatchHalf& half) {
  const int columns = config_.indexer.head_dim;
  device_.queue(StoreKv{.pages = state_.indexes[static_cast<size_t>(layer)],
                        .keys = half.entry_rows,
                        .values = half.entry_rows,
                        .keys_stride = columns,
                        .values_stride = columns,
                        .page = entries.page,
                        .slot = entries.slot,
                        .tokens = entries.count});
}

// The queries' products have been computed with those of attention.
void Model::choose_positions(int layer, const BatchHalf& half) {
  const IndexerConfig& indexer = config_.indexer;
  const bool are_entries = config_.compressed.has_value();  // which are counted, not positions
  const int stride = half.index_pages * kPagePositions / indexer.pool;
  const int mask_words = half.index_pages * kMaskWordsOfPage;
  rotate_index(half.index_query, indexer.heads, half);
  for (int begin = 0; begin < half.tokens; begin += half.index_tokens) {
    const auto from = [&](Slice place, int width) {
      return Slice{place.buffer,
                   place.offset + static_cast<size_t>(begin) * static_cast<size_t>(width)};
    };
    const int tokens = std::min(half.index_tokens, half.tokens - begin);
    const Slice positions = from(half.positions, 1);
    device_.queue(IndexScores{.pages = state_.indexes[static_cast<size_t>(layer)],
                              .pool = indexer.pool,
                              .query = from(half.index_query, indexer.heads * indexer.head_dim),
                              .weights = from(half.index_weights, indexer.heads),
                              .positions = positions,
                              .page_lists = half.page_lists,
                              .list_offsets = from(half.list_offsets, 1),
                              .pages_reached = pages_reached_,
                              .tokens = tokens,
                              .heads = indexer.heads,
                              .chosen = indexer.first_choosing(),
                              .scores = half.index_scores,
                              .stride = stride});
    device_.queue(ChoosePositions{.scores = half.index_scores,
                                  .stride = stride,
                                  .positions = are_entries ? from(half.last_entry, 1) : positions,
                                  .tokens = tokens,
                                  .chosen = are_entries ? indexer.chosen_entries() : indexer.chosen,
                                  .pool = are_entries ? 1 : indexer.pool,
                                  .mask = from(half.mask, mask_words),
                                  .mask_words = mask_words});
  }
}

}  // namespace lockstep
