// The forward pass. Main flow first: all operations are queued, with the exchanges among them as
// turns of the host, and then run.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "model/forward/model.h"
#include "model/forward/rope.h"

namespace lockstep {
namespace {

Activation activation_of(Gating gating) {
  if (gating == Gating::kGelu) return Activation::kGeluMul;
  if (gating == Gating::kClippedSilu) return Activation::kClippedSiluMul;
  return gating == Gating::kSilu ? Activation::kSiluMul : Activation::kClampedSwiglu;
}

}  // namespace

Result<ModelOutputs> Model::forward(const Batch& batch, std::span<const float> passed) {
  TRY(check_batch(batch, limits_));
  const int tokens = batch.token_count();
  list_entries(batch);
  list_ngrams(batch);
  make_halves(tokens, config_.streams.count);
  turns_.clear();
  write_batch(batch);
  if (has_embedding() && config_.streams.count > 1) {
    embed_streams(batch);
  } else if (has_embedding()) {
    embed(batch, buffers_.hidden);
  } else {
    receive(passed, batch.tokens.size());
  }
  for (int layer = layers_.begin; layer < layers_.end; ++layer) queue_layer(layer);
  for (BatchHalf& half : halves()) {
    finish_feed_forward(layers_.end - 1, half);
    add_sum(half);
    keep_tap(layers_.end - 1, half);
  }
  if (has_head() && config_.streams.count > 1) join_streams(weights_.shared, tokens);
  if (has_draft_layer()) keep_hidden(tokens);
  has_head() ? queue_outputs(batch) : pass_on(tokens);
  TRY(run());
  return outputs(batch);
}

void Model::queue_layer(int layer) {
  for (BatchHalf& half : halves()) {
    finish_feed_forward(layer - 1, half);
    if (layer < config_.layers) keep_tap(layer - 1, half);
    attention(layer, half);
    exchange(mixer_shares(layer), 1, half, false);
  }
  for (BatchHalf& half : halves()) {
    finish_attention(layer, half);
    feed_forward(layer, half);
    const bool is_last = layer + 1 >= layers_.end && &half == &halves().back();
    exchange(feed_forward_shares(layer), config_.layer(layer).feed_forward_sums(), half, is_last);
  }
  if (between_layers_) queue_turn({.kind = Turn::Kind::kBetweenLayers});
}

void Model::queue_turn(const Turn& turn) {
  device_.queue(HostTurn{static_cast<int>(turns_.size())});
  turns_.push_back(turn);
}

Status Model::run() {
  return device_.run([this](int number) { return take_turn(turns_[static_cast<size_t>(number)]); });
}

Status Model::take_turn(const Turn& turn) {
  switch (turn.kind) {
    case Turn::Kind::kGatherEmbeddings:
      return gather_parts(embedded_ends_);
    case Turn::Kind::kGatherPair:
      return gather_pair(turn.pair, turn.half->tokens);
    case Turn::Kind::kSum:
      return exchange_sums(turn);
    case Turn::Kind::kBetweenLayers:
      return between_layers_();
  }
  return Ok{};
}

void Model::write_batch(const Batch& batch) {
  page_.clear();
  slot_.clear();
  int32_t last = 0;
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    const int32_t entry = batch.list_offsets[i] + batch.positions[i] / kPagePositions;
    page_.push_back(batch.page_lists[static_cast<size_t>(entry)]);
    slot_.push_back(batch.positions[i] % kPagePositions);
    last = std::max(last, batch.positions[i]);
  }
  // Powers of two, so that most passes queue the same operations as the one before.
  pages_reached_ =
      static_cast<int>(std::bit_ceil(static_cast<uint32_t>(last / kPagePositions + 1)));
  is_sparse_ = buffers_.index_pages > 0 && last >= config_.indexer.first_choosing();
  device_.write_ints(buffers_.positions, batch.positions);
  device_.write_ints(buffers_.list_offsets, batch.list_offsets);
  device_.write_ints(buffers_.page_lists, batch.page_lists);
  device_.write_ints(buffers_.page, page_);
  device_.write_ints(buffers_.slot, slot_);
  if (!batch.window_offsets.empty()) write_windows(batch);
  if (!batch.states_from.empty()) {
    device_.write_ints(buffers_.states_from, batch.states_from);
    device_.write_ints(buffers_.states_to, batch.states_to);
  }
  device_.write_ints(buffers_.outputs, batch.outputs);
  device_.write_ints(buffers_.hidden_outputs, batch.hidden_outputs);
  if (config_.query_scaling.beta != 0) {
    factors_.clear();
    for (int32_t position : batch.positions) {
      factors_.push_back(query_factor(config_.query_scaling, position));
    }
    device_.write(buffers_.factors, std::as_bytes(std::span<const float>(factors_)));
  }
  write_angles(batch);
  if (config_.compressed) write_last_entries(batch);
  write_entries();
}

// The lists of window pages follow the others, so that operations find all in one place.
void Model::write_windows(const Batch& batch) {
  const auto begin = static_cast<int32_t>(batch.page_lists.size());
  window_page_.clear();
  window_offsets_.clear();
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    const int32_t offset = batch.window_offsets[i];
    const int32_t entry = offset + batch.positions[i] / kPagePositions;
    window_page_.push_back(batch.window_lists[static_cast<size_t>(entry)]);
    window_offsets_.push_back(begin + offset);
  }
  device_.write_ints({buffers_.page_lists.buffer, batch.page_lists.size()}, batch.window_lists);
  device_.write_ints(buffers_.window_offsets, window_offsets_);
  device_.write_ints(buffers_.window_page, window_page_);
}

void Model::write_angles(const Batch& batch) {
  const bool turns_back = config_.compressed.has_value();
  write_rope(batch.positions, frequencies_, buffers_.rope);
  if (turns_back) write_rope_back(buffers_.rope_back);
  if (other_frequencies_.empty()) return;
  write_rope(batch.positions, other_frequencies_, buffers_.other_rope);
  if (turns_back) write_rope_back(buffers_.other_rope_back);
}

void Model::write_rope(std::span<const int32_t> positions, std::span<const double> frequencies,
                       Slice table) {
  const double factor = config_.yarn_rope ? config_.yarn_rope->attention_factor : 1;
  rope_.clear();
  for (const int32_t position : positions) {
    append_rope_row(frequencies, position, static_cast<float>(factor), rope_);
  }
  device_.write(table, std::as_bytes(std::span<const float>(rope_)));
}

// By the same angles the other way: sines, which follow the cosines of a token, change their signs.
void Model::write_rope_back(Slice table) {
  const size_t pairs = rope_pairs(config_);
  for (size_t at = 0; at < rope_.size(); ++at) {
    if (at / pairs % 2 == 1) rope_[at] = -rope_[at];
  }
  device_.write(table, std::as_bytes(std::span<const float>(rope_)));
}

void Model::attention(int layer, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  if (config_.layer(layer).adds_ngrams) add_ngrams(layer, half);
  norm_hidden(layer, Role::kAttentionNorm, half);
  if (config_.layer(layer).is_recurrent()) return delta_layer(layer, half);
  if (config_.layer(layer).is_compressed()) return compressed_attention(layer, half);
  if (config_.layer(layer).is_latent()) {
    project_latent(layer, half);
  } else {
    project(layer, half);
  }
  mix(layer, half);
  const Slice mixed = config_.layer(layer).gates_output ? half.query_gate : half.mixed;
  device_.queue(
      Matmul{mixed, half.tokens, {{weights.matrix(Role::kAttentionOut), {half.partials, 0}}}});
}

// The bias of a product that is summed over ranks is added once, after the sum.
void Model::finish_attention(int layer, BatchHalf& half) {
  norm_sum(layer, Role::kAttentionPostNorm, half);
  if (!config_.layer(layer).has(Role::kAttentionOutBias)) return;
  add_sum(half);
  device_.queue(AddBias{half.hidden, layer_weights(layer).vector(Role::kAttentionOutBias),
                        half.tokens, config_.hidden});
}

// Stores this step's keys and values, if the layer has its own, and lets the queries attend. With
// latent attention the one key/value head is the latent, its value is the first part of the key,
// and each head maps the result to its own value. A gated result is left in the gate's place. Where
// positions are chosen, whole keys are stored as values, so that a position's key is also found in
// one piece.
void Model::mix(int layer, const BatchHalf& half) {
  const LayerPages& pages = state_.layers[static_cast<size_t>(layer)];
  LayerPages stored = pages;
  if (config_.indexer.chosen > 0) stored.value_dim = stored.head_dim;
  const LayerTraits& traits = config_.layer(layer);
  const bool is_latent = traits.is_latent();
  const Range heads = cut_.heads(rank_);
  const int stride = pages.kv_heads * pages.head_dim;
  const PagePlaces places = places_of(layer, half);
  if (traits.has_state() && !traits.state.has_key_rows) {
    device_.queue(StoreKv{.pages = stored,
                          .keys = is_latent ? half.kv_latent : half.key,
                          .values = is_latent ? half.kv_latent : half.value,
                          .keys_stride = stride,
                          .values_stride = stride,
                          .page = places.page,
                          .slot = half.slot,
                          .tokens = half.tokens});
  }
  if (traits.state.has_key_rows) {
    store_key_rows(layer, half);
    store_block_index(layer, half);
  } else if (traits.has_index()) {
    store_index_key(layer, half);
  }
  if (is_choosing(layer)) choose_positions(layer, half);
  device_.queue(Attention{.pages = pages,
                          .query = is_latent ? half.absorbed : half.query,
                          .positions = half.positions,
                          .page_lists = half.page_lists,
                          .list_offsets = places.list_offsets,
                          .pages_reached = pages_reached_,
                          .tokens = half.tokens,
                          .heads = heads.size(),
                          .head_begin = heads.begin,
                          .heads_per_kv = config_.heads / traits.state.heads,
                          .kv_begin = state_shape(traits.state, cut_, rank_).heads.begin,
                          .window = traits.window,
                          .scale = config_.attention_scale,
                          .has_sinks = traits.has(Role::kSinks),
                          .sinks = layer_weights(layer).vector(Role::kSinks),
                          .output = is_latent ? half.mixed_latent : half.mixed,
                          .chosen = is_sparse_ ? config_.indexer.first_choosing() : 0,
                          .mask = half.mask,
                          .mask_words = half.index_pages * kMaskWordsOfPage,
                          .keys_are_rows = traits.state.has_key_rows});
  if (traits.gates_output) {
    const int width = heads.size() * traits.head_dim;
    device_.queue(Activate{.gate = half.query_gate,
                           .up = half.mixed,
                           .tokens = half.tokens,
                           .columns = width,
                           .up_stride = width,
                           .activation = Activation::kSigmoidMul});
  }
  if (!is_latent) return;
  device_.queue(HeadMatmul{.matrices = &layer_weights(layer).values,
                           .input = half.mixed_latent,
                           .input_stride = config_.latent.kv_rank,
                           .tokens = half.tokens,
                           .output = half.mixed,
                           .output_stride = config_.latent.value});
}

// Queries, keys and values of the normed hidden state: product, bias, norm, rotation.
void Model::project(int layer, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const LayerTraits& traits = config_.layer(layer);
  const int head_dim = traits.head_dim;
  const Slice rope = traits.has_other_rope ? half.other_rope : half.rope;
  const int pairs = traits.has_other_rope ? head_dim / 2 : config_.rotary_dims / 2;
  const auto add_bias = [&](Role bias, Slice x, int heads) {
    if (!traits.has(bias)) return;
    device_.queue(AddBias{x, weights.vector(bias), half.tokens, heads * head_dim});
  };
  const auto norm_and_rotate = [&](Role norm, Slice x, int heads) {
    if (traits.has(norm) && !traits.joins_head_norms) {
      device_.queue(RmsNorm{x, weights.vector(norm), half.tokens * heads, head_dim,
                            config_.norm_epsilon, x, head_dim});
    }
    device_.queue(Rope{x, rope, half.tokens, heads, head_dim, pairs});
  };
  const int heads = cut_.heads(rank_).size();
  const int kv_heads = cut_.kv_heads(rank_, traits.state.heads).size();
  const bool has_values = traits.has(Role::kValue);
  const int products = has_values ? 3 : 2;
  device_.queue(
      Matmul{half.normed,
             half.tokens,
             {{weights.matrix(Role::kQuery), traits.gates_output ? half.gated_query : half.query},
              {weights.matrix(Role::kKey), half.key},
              {weights.matrix(Role::kValue), half.value}},
             traits.has_state() ? products : 1});
  if (traits.gates_output) take_gates_apart(heads, head_dim, half);
  if (!traits.has_state()) return norm_and_rotate(Role::kQueryNorm, half.query, heads);
  if (!has_values) {
    const int width = kv_heads * head_dim;
    device_.queue(CopyColumns{half.key, half.tokens, width, half.value, width});
  }
  if (traits.norms_values) {
    device_.queue(RmsNorm{half.value, buffers_.ones, half.tokens * kv_heads, head_dim,
                          config_.norm_epsilon, half.value, head_dim});
  }
  add_bias(Role::kQueryBias, half.query, heads);
  add_bias(Role::kKeyBias, half.key, kv_heads);
  add_bias(Role::kValueBias, half.value, kv_heads);
  if (traits.joins_head_norms) norm_joined_heads(layer, half);
  norm_and_rotate(Role::kQueryNorm, half.query, heads);
  norm_and_rotate(Role::kKeyNorm, half.key, kv_heads);
  if (config_.query_scaling.beta != 0) {
    device_.queue(ScaleRows{half.query, half.factors, half.tokens, heads * head_dim});
  }
}

// Each head's query is followed by its gate.
void Model::take_gates_apart(int heads, int head_dim, const BatchHalf& half) {
  Slice from = half.gated_query;
  for (const Slice to : {half.query, half.query_gate}) {
    device_.queue(CopyColumns{.input = from,
                              .count = half.tokens * heads,
                              .columns = head_dim,
                              .output = to,
                              .output_stride = head_dim,
                              .input_stride = 2 * head_dim});
    from.offset += static_cast<size_t>(head_dim);
  }
}

void Model::feed_forward(int layer, BatchHalf& half) {
  norm_hidden(layer, Role::kFeedForwardNorm, half);
  const LayerTraits& traits = config_.layer(layer);
  if (traits.has(Role::kDown)) dense_feed_forward(layer, half);
  if (traits.has_experts) experts(layer, half);
}

void Model::dense_feed_forward(int layer, const BatchHalf& half) {
  device_.queue(gated_up(layer, half, Role::kGate, Role::kUp));
  device_.queue(
      Matmul{half.gate,
             half.tokens,
             {{layer_weights(layer).matrix(Role::kDown), product_place(layer, half, 0)}}});
  place_product(layer, half, 0);
}

const LeafShares& Model::mixer_shares(int layer) const {
  return config_.layer(layer).is_recurrent() ? cut_.delta_shares() : cut_.head_shares();
}

const LeafShares& Model::feed_forward_shares(int layer) const {
  return config_.layer(layer).has_experts ? cut_.expert_shares() : cut_.ffn_shares();
}

// Leaves its result in the gate's buffer.
GatedUp Model::gated_up(int layer, const BatchHalf& half, Role gate, Role up) const {
  const LayerWeights& weights = layer_weights(layer);
  return {.gate = weights.matrix(gate),
          .up = weights.matrix(up),
          .input = half.normed,
          .tokens = half.tokens,
          .scratch = half.up,
          .output = half.gate,
          .activation = activation_of(config_.layer(layer).gating),
          .limit = config_.gate_limit};
}

// The router and the experts may have inputs of their own, other norms of the same hidden state.
void Model::route(int layer, const BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const LayerTraits& traits = config_.layer(layer);
  const ExpertsConfig& config = config_.experts;
  const bool is_softmax = traits.scores == RouterForm::kSoftmax;
  const auto norm = [&](Role role) {
    if (traits.has(role)) queue_norm(half.hidden, weights.vector(role), half.tokens, half.normed);
  };
  norm(Role::kRouterNorm);
  const bool scores_shared = traits.has(Role::kSharedScore);
  device_.queue(Matmul{half.normed,
                       half.tokens,
                       {{weights.matrix(Role::kRouter), half.scores},
                        {weights.matrix(Role::kSharedScore), half.shared_score}},
                       scores_shared ? 2 : 1});
  // The softmax of all scores, normalised over the chosen, is the softmax of the chosen ones.
  if (is_softmax && traits.has(Role::kRouterBias)) {
    device_.queue(
        AddBias{half.scores, weights.vector(Role::kRouterBias), half.tokens, config.count});
  }
  if (traits.has_given_experts) {
    device_.queue(CopyRows{.input = weights.vector(Role::kRouterTable),
                           .rows = half.token_ids,
                           .count = half.tokens,
                           .columns = config.chosen,
                           .output = half.given});
  }
  device_.queue(Route{.scores = half.scores,
                      .bias = weights.vector(Role::kRouterBias),
                      .tokens = half.tokens,
                      .experts = config.count,
                      .chosen = config.chosen,
                      .form = traits.scores,
                      .has_given = traits.has_given_experts,
                      .given = half.given,
                      .groups = config.groups,
                      .chosen_groups = config.chosen_groups,
                      .normalises = config.normalises,
                      .factor = config.factor,
                      .has_scales = traits.has(Role::kExpertScales),
                      .scales = weights.vector(Role::kExpertScales),
                      .output = half.chosen,
                      .weights = half.chosen_weights});
  norm(Role::kExpertsNorm);
}

// Every rank makes the same choice of experts; each computes its columns of every chosen one.
void Model::experts(int layer, const BatchHalf& half) {
  route(layer, half);
  const LayerWeights& weights = layer_weights(layer);
  const LayerTraits& traits = config_.layer(layer);
  const ExpertsConfig& config = config_.experts;
  const bool has_shared = traits.has(Role::kSharedDown);
  const bool scores_shared = traits.has(Role::kSharedScore);
  const int index = traits.feed_forward_sums() - 1;
  device_.queue(ExpertsUp{.matrices = &weights.experts,
                          .chosen = half.chosen,
                          .weights = half.chosen_weights,
                          .tokens = half.tokens,
                          .chosen_count = config.chosen,
                          .input = half.normed,
                          .scratch = half.expert_scratch,
                          .output = half.expert_hidden,
                          .activation = activation_of(traits.gating),
                          .limit = config_.gate_limit,
                          .has_bias = traits.has(Role::kExpertGateBias),
                          .gate_bias = weights.vector(Role::kExpertGateBias),
                          .up_bias = weights.vector(Role::kExpertUpBias),
                          .has_shared = has_shared,
                          .shared = gated_up(layer, half, Role::kSharedGate, Role::kSharedUp)});
  if (scores_shared) {
    device_.queue(Sigmoid{half.shared_score, static_cast<size_t>(half.tokens)});
    device_.queue(
        ScaleRows{half.gate, half.shared_score, half.tokens, cut_.shared_ffn(rank_).size()});
  }
  device_.queue(ExpertsDown{.matrices = &weights.experts,
                            .chosen = half.chosen,
                            .tokens = half.tokens,
                            .chosen_count = config.chosen,
                            .input = half.expert_hidden,
                            .has_shared = has_shared,
                            .shared = weights.matrix(Role::kSharedDown),
                            .shared_input = half.gate,
                            .output = product_place(layer, half, index)});
  place_product(layer, half, index);
}

// There is nothing to finish before a stage's first layer.
void Model::finish_feed_forward(int layer, BatchHalf& half) {
  if (!half.has_sum) return;
  const LayerTraits& traits = config_.layer(layer);
  join_products(layer, half);
  norm_sum(layer, Role::kFeedForwardPostNorm, half);
  if (traits.has(Role::kLayerInputGate)) add_layer_input(layer, half);
  if (traits.has(Role::kLayerScale)) {
    add_sum(half);
    const size_t count = static_cast<size_t>(half.tokens) * static_cast<size_t>(config_.hidden);
    device_.queue(Scale{half.hidden, layer_weights(layer).vector(Role::kLayerScale), count});
  }
  if (!traits.has(Role::kExpertDownBias)) return;
  add_sum(half);
  device_.queue(AddExpertBias{.bias = layer_weights(layer).vector(Role::kExpertDownBias),
                              .chosen = half.chosen,
                              .weights = half.chosen_weights,
                              .tokens = half.tokens,
                              .experts = config_.experts.count,
                              .chosen_count = config_.experts.chosen,
                              .columns = config_.hidden,
                              .x = half.hidden});
}

}  // namespace lockstep
