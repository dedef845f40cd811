// The part of the forward pass specific to compressed attention: the one key of each position, the
// entries that stand for several positions, and the results of heads, which go through a latent of
// their group. Keys and entries are whole on every rank. Source: DeepSeek's inference/model.py.
#include <algorithm>

#include "model/forward/model.h"

namespace lockstep {

// The weights and places of entries, of attention or of its index.
struct Model::EntryParts {
  Role values;
  Role gates;
  Role bias;
  Role norm;
  int dim;
  int parts;
  LayerPages inputs;
};

const EntryBuffers& Model::entries_of(const BatchHalf& half, int pool) const {
  const auto found = std::find(config_.pools.begin(), config_.pools.end(), pool);
  return half.entries[static_cast<size_t>(found - config_.pools.begin())];
}

// A token completes an entry if its position is the last of a pool. The entry is in the token's
// page, the first of it that is in none before (CompressedAttention in device/operations.h). Its
// inputs may be in window pages, whose lists follow the others (write_windows).
void Model::list_entries(const Batch& batch) {
  const bool inputs_are_apart = config_.compressed && !batch.window_offsets.empty();
  const auto windows_begin = static_cast<int32_t>(batch.page_lists.size());
  for (size_t kind = 0; kind < entries_.size(); ++kind) {
    ListedEntries& list = entries_[kind];
    for (std::vector<int32_t>* words : list.all()) words->clear();
    const int pool = config_.pools[kind];
    const int slots = EntryShape{{.pool = pool}}.slots();
    for (size_t i = 0; i < batch.tokens.size(); ++i) {
      const int32_t position = batch.positions[i];
      if ((position + 1) % pool != 0) continue;
      const int32_t in_list = batch.list_offsets[i] + position / kPagePositions;
      list.token.push_back(static_cast<int32_t>(i));
      list.last.push_back(position);
      list.first.push_back(position + 1 - pool);
      list.list_offsets.push_back(inputs_are_apart ? windows_begin + batch.window_offsets[i]
                                                   : batch.list_offsets[i]);
      list.page.push_back(batch.page_lists[static_cast<size_t>(in_list)]);
      list.slot.push_back(position / pool % slots);
    }
  }
}

void Model::skip_entries(int begin, int tokens, BatchHalf& half) const {
  for (size_t kind = 0; kind < entries_.size(); ++kind) {
    const std::vector<int32_t>& of = entries_[kind].token;
    const auto first = std::lower_bound(of.begin(), of.end(), begin);
    const auto last = std::lower_bound(first, of.end(), begin + tokens);
    half.entries[kind].skip(static_cast<int>(first - of.begin()), config_.rotary_dims);
    half.entries[kind].count = static_cast<int>(last - first);
  }
}

void Model::write_last_entries(const Batch& batch) {
  device_.write_ints(buffers_.token_ids, batch.tokens);
  last_entry_.clear();
  for (const int32_t position : batch.positions) {
    last_entry_.push_back((position + 1) / config_.indexer.pool - 1);
  }
  device_.write_ints(buffers_.last_entry, last_entry_);
}

void Model::write_entries() {
  for (size_t kind = 0; kind < entries_.size(); ++kind) {
    const ListedEntries& list = entries_[kind];
    const EntryBuffers& to = buffers_.entries[kind];
    device_.write_ints(to.last, list.last);
    device_.write_ints(to.list_offsets, list.list_offsets);
    device_.write_ints(to.page, list.page);
    device_.write_ints(to.slot, list.slot);
    write_rope(list.first, frequencies_, to.rope);
  }
}

void Model::compressed_attention(int layer, BatchHalf& half) {
  project_compressed(layer, half);
  if (config_.layer(layer).pool > 0) make_entries(layer, half);
  if (is_choosing(layer)) choose_positions(layer, half);
  attend_compressed(layer, half);
}

// Each head's query is normed without weights.
void Model::project_compressed(int layer, const BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const LayerTraits& traits = config_.layer(layer);
  const int head_dim = traits.head_dim, heads = cut_.heads(rank_).size();
  const auto norm = [&](Slice x, Slice weight, int rows, int columns) {
    device_.queue(RmsNorm{x, weight, rows, columns, config_.norm_epsilon, x, columns});
  };
  device_.queue(Matmul{half.normed,
                       half.tokens,
                       {{weights.matrix(Role::kQueryDown), half.query_latent},
                        {weights.matrix(Role::kSharedKey), half.key}},
                       2});
  norm(half.query_latent, weights.vector(Role::kQueryDownNorm), half.tokens,
       config_.latent.query_rank);
  device_.queue(Matmul{half.query_latent,
                       half.tokens,
                       {{weights.matrix(Role::kQuery), half.query},
                        {weights.matrix(Role::kIndexQuery), half.index_query}},
                       is_choosing(layer) ? 2 : 1});
  norm(half.query, half.ones, half.tokens * heads, head_dim);
  turn_last(layer, half.query, heads, half);
  store_shared_key(layer, half);
}

// The last dimensions of queries and keys turn.
void Model::turn_last(int layer, Slice x, int heads, const BatchHalf& half) {
  const LayerTraits& traits = config_.layer(layer);
  const int head_dim = traits.head_dim, rope = config_.latent.rope;
  const Slice table = traits.has_other_rope ? half.other_rope : half.rope;
  device_.queue(RotatePairs{x, head_dim, head_dim - rope, table, half.tokens, heads, rope, x,
                            head_dim, head_dim - rope});
}

// Norms and turns the products in `key`, and stores them.
void Model::store_shared_key(int layer, const BatchHalf& half) {
  const int head_dim = config_.layer(layer).head_dim;
  device_.queue(RmsNorm{half.key, layer_weights(layer).vector(Role::kSharedKeyNorm), half.tokens,
                        head_dim, config_.norm_epsilon, half.key, head_dim});
  turn_last(layer, half.key, 1, half);
  store_rows(state_.layers[static_cast<size_t>(layer)], half.key, head_dim,
             places_of(layer, half).page, half);
}

void Model::store_rows(const LayerPages& pages, Slice rows, int columns, Slice page,
                       const BatchHalf& half) {
  device_.queue(StoreRows{.pages = pages,
                          .rows = rows,
                          .rows_stride = columns,
                          .page = page,
                          .slot = half.slot,
                          .tokens = half.tokens});
}

// Entries are made of what is stored, so that their bits do not depend on how many of a pool's
// positions are in one batch; one that a wrong guess completed is made again.
void Model::make_entries(int layer, const BatchHalf& half) {
  const auto index = static_cast<size_t>(layer);
  const StateTraits& state = config_.layer(layer).state;
  const EntryBuffers& entries = entries_of(half, config_.layer(layer).pool);
  queue_entries(layer,
                {Role::kEntryValues, Role::kEntryGates, Role::kEntryBias, Role::kEntryNorm,
                 state.entries.dim, state.entries.parts, state_.entry_inputs[index]},
                half);
  if (entries.count > 0) {
    device_.queue(StoreRows{.pages = state_.entries[index],
                            .rows = half.entry_rows,
                            .rows_stride = state.entries.dim,
                            .page = entries.page,
                            .slot = entries.slot,
                            .tokens = entries.count});
  }
  if (!config_.layer(layer).has_index()) return;
  queue_entries(
      layer,
      {Role::kIndexEntryValues, Role::kIndexEntryGates, Role::kIndexEntryBias,
       Role::kIndexEntryNorm, state.index.dim, state.index.parts, state_.index_inputs[index]},
      half);
  if (entries.count > 0) store_index_entries(layer, entries, half);
  if (!is_choosing(layer)) return;
  device_.queue(Matmul{half.normed,
                       half.tokens,
                       {{layer_weights(layer).matrix(Role::kIndexWeights), half.index_weights}}});
}

// Leaves the entries that the tokens complete in `entry_rows`, normed and turned.
void Model::queue_entries(int layer, const EntryParts& parts, const BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const EntryBuffers& entries = entries_of(half, config_.layer(layer).pool);
  const int width = parts.parts * parts.dim, rope = config_.latent.rope;
  device_.queue(Matmul{half.normed,
                       half.tokens,
                       {{weights.matrix(parts.values), half.entry_values},
                        {weights.matrix(parts.gates), half.entry_gates}},
                       2});
  join_columns(half.entry_values, half.entry_gates, width, half, half.entry_inputs);
  store_rows(parts.inputs, half.entry_inputs, 2 * width, places_of(layer, half).page, half);
  if (entries.count == 0) return;
  device_.queue(Compress{.inputs = parts.inputs,
                         .bias = weights.vector(parts.bias),
                         .last = entries.last,
                         .page_lists = half.page_lists,
                         .list_offsets = entries.list_offsets,
                         .entries = entries.count,
                         .pool = config_.layer(layer).pool,
                         .overlaps = parts.parts == 2,
                         .columns = parts.dim,
                         .output = half.entry_rows});
  device_.queue(RmsNorm{half.entry_rows, weights.vector(parts.norm), entries.count, parts.dim,
                        config_.norm_epsilon, half.entry_rows, parts.dim});
  device_.queue(RotatePairs{half.entry_rows, parts.dim, parts.dim - rope, entries.rope,
                            entries.count, 1, rope, half.entry_rows, parts.dim, parts.dim - rope});
}

// The values had turned: the results turn back.
void Model::attend_compressed(int layer, const BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const LayerTraits& traits = config_.layer(layer);
  const auto index = static_cast<size_t>(layer);
  const int heads = cut_.heads(rank_).size(), rope = config_.latent.rope;
  const int heads_of_group = config_.heads / config_.compressed->groups;
  device_.queue(
      CompressedAttention{.rows = state_.layers[index],
                          .entries = state_.entries[index],
                          .pool = traits.pool,
                          .query = half.query,
                          .positions = half.block > 0 ? half.block_end : half.positions,
                          .page_lists = half.page_lists,
                          .list_offsets = places_of(layer, half).list_offsets,
                          .entry_offsets = half.list_offsets,
                          .pages_reached = pages_reached_,
                          .tokens = half.tokens,
                          .heads = heads,
                          .window = traits.window + half.block,
                          .scale = config_.attention_scale,
                          .has_sinks = traits.has(Role::kSinks),
                          .sinks = weights.vector(Role::kSinks),
                          .output = half.mixed,
                          .chosen = is_choosing(layer) ? config_.indexer.chosen_entries() : 0,
                          .mask = half.mask,
                          .mask_words = half.index_pages * kMaskWordsOfPage});
  const int first = traits.head_dim - rope;
  const Slice back = traits.has_other_rope ? half.other_rope_back : half.rope_back;
  device_.queue(RotatePairs{half.mixed, traits.head_dim, first, back, half.tokens, heads, rope,
                            half.mixed, traits.head_dim, first});
  device_.queue(HeadMatmul{.matrices = &weights.groups,
                           .input = half.mixed,
                           .input_stride = heads_of_group * traits.head_dim,
                           .tokens = half.tokens,
                           .output = half.group_latents,
                           .output_stride = config_.compressed->group_rank});
  device_.queue(Matmul{half.group_latents,
                       half.tokens,
                       {{weights.matrix(Role::kAttentionOut), {half.partials, 0}}}});
}

}  // namespace lockstep
