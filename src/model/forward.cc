// The forward pass. Main flow first; each step queues operations, exchanges are the only places
// where the host waits.
#include "base/check.h"
#include "model/model.h"
#include "model/rope.h"

namespace lockstep {

Result<ModelOutputs> Model::forward(const Batch& batch, std::span<const float> hidden) {
  TRY(check_batch(batch, limits_));
  const int tokens = batch.token_count();
  has_sum_ = false;
  write_batch(batch);
  if (has_embedding()) {
    TRY(embed(batch));
  } else {
    LOCKSTEP_CHECK(hidden.size() == batch.tokens.size() * static_cast<size_t>(config_.hidden));
    device_.write(buffers_.hidden, std::as_bytes(hidden));
  }
  for (int layer = layers_.begin; layer < layers_.end; ++layer) {
    TRY(attention(layer, tokens));
    TRY(exchange(cut_.head_shares(), tokens));
    add_attention_bias(layer, tokens);
    TRY(feed_forward(layer, tokens));
    if (between_layers_) TRY(between_layers_());
  }
  add_sum(tokens);
  return has_head() ? outputs(batch) : pass_on(tokens);
}

void Model::write_batch(const Batch& batch) {
  page_.clear();
  slot_.clear();
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    const int32_t entry = batch.list_offsets[i] + batch.positions[i] / kPagePositions;
    page_.push_back(batch.page_lists[static_cast<size_t>(entry)]);
    slot_.push_back(batch.positions[i] % kPagePositions);
  }
  device_.write_ints(buffers_.positions, batch.positions);
  device_.write_ints(buffers_.list_offsets, batch.list_offsets);
  device_.write_ints(buffers_.page_lists, batch.page_lists);
  device_.write_ints(buffers_.page, page_);
  device_.write_ints(buffers_.slot, slot_);
  device_.write_ints(buffers_.outputs, batch.outputs);
  if (config_.query_scaling.beta != 0) {
    factors_.clear();
    for (int32_t position : batch.positions) {
      factors_.push_back(query_factor(config_.query_scaling, position));
    }
    device_.write(buffers_.factors, std::as_bytes(std::span<const float>(factors_)));
  }
  const double factor = config_.yarn_rope ? config_.yarn_rope->attention_factor : 1;
  device_.queue(RopeTable{.factor = static_cast<float>(factor),
                          .positions = buffers_.positions,
                          .frequencies = buffers_.frequencies,
                          .tokens = batch.token_count(),
                          .half = config_.rotary_dims / 2,
                          .output = buffers_.rope});
}

Status Model::attention(int layer, int tokens) {
  const LayerWeights& weights = layer_weights(layer);
  norm_hidden(weights.vector(Role::kAttentionNorm), tokens);
  if (config_.latent) {
    TRY(project_latent(layer, tokens));
  } else {
    project(layer, tokens);
  }
  mix(layer, tokens);
  device_.queue(
      Matmul{weights.matrix(Role::kAttentionOut), buffers_.mixed, tokens, {buffers_.partials, 0}});
  return Ok{};
}

// The bias of what is summed over ranks: once, after the sum.
void Model::add_attention_bias(int layer, int tokens) {
  if (config_.kind(layer).mixer != Mixer::kSinkAttention) return;
  add_sum(tokens);
  device_.queue(AddBias{buffers_.hidden, layer_weights(layer).vector(Role::kAttentionOutBias),
                        tokens, config_.hidden});
}

// Stores this step's keys and values and lets the queries attend. With latent attention the one
// key/value head is the latent, its value the first part of the key, and each head turns what it
// gets into its own value.
void Model::mix(int layer, int tokens) {
  const LayerPages& pages = pages_[static_cast<size_t>(layer)];
  const bool is_latent = config_.latent.has_value();
  const Range heads = cut_.heads(rank_);
  const int stride = pages.kv_heads * pages.head_dim;
  device_.queue(StoreKv{.pages = pages,
                        .keys = is_latent ? buffers_.kv_latent : buffers_.key,
                        .values = is_latent ? buffers_.kv_latent : buffers_.value,
                        .keys_stride = stride,
                        .values_stride = stride,
                        .page = buffers_.page,
                        .slot = buffers_.slot,
                        .tokens = tokens});
  device_.queue(Attention{.pages = pages,
                          .query = is_latent ? buffers_.absorbed : buffers_.query,
                          .positions = buffers_.positions,
                          .page_lists = buffers_.page_lists,
                          .list_offsets = buffers_.list_offsets,
                          .tokens = tokens,
                          .heads = heads.size(),
                          .head_begin = heads.begin,
                          .heads_per_kv = is_latent ? config_.heads : config_.heads_per_kv(),
                          .kv_begin = is_latent ? 0 : cut_.kv_heads(rank_).begin,
                          .window = config_.windows[static_cast<size_t>(layer)],
                          .scale = config_.attention_scale,
                          .has_sinks = config_.kind(layer).mixer == Mixer::kSinkAttention,
                          .sinks = layer_weights(layer).vector(Role::kSinks),
                          .output = is_latent ? buffers_.mixed_latent : buffers_.mixed});
  if (!is_latent) return;
  device_.queue(HeadMatmul{.matrices = &layer_weights(layer).values,
                           .input = buffers_.mixed_latent,
                           .input_stride = config_.latent->kv_rank,
                           .tokens = tokens,
                           .output = buffers_.mixed,
                           .output_stride = config_.latent->value});
}

// Queries, keys and values of the normed hidden state: product, bias, norm of each head, rotation.
void Model::project(int layer, int tokens) {
  const LayerWeights& weights = layer_weights(layer);
  const int head_dim = config_.head_dim;
  const auto multiply = [&](Role role, Role bias, Slice output, int heads) {
    device_.queue(Matmul{weights.matrix(role), buffers_.normed, tokens, output});
    if (!config_.qkv_bias) return;
    device_.queue(AddBias{output, weights.vector(bias), tokens, heads * head_dim});
  };
  const auto norm_and_rotate = [&](Role norm, Slice x, int heads) {
    if (config_.head_norms) {
      device_.queue(RmsNorm{x, weights.vector(norm), tokens * heads, head_dim, config_.norm_epsilon,
                            x, head_dim});
    }
    device_.queue(Rope{x, buffers_.rope, tokens, heads, head_dim, config_.rotary_dims / 2});
  };
  const int heads = cut_.heads(rank_).size(), kv_heads = cut_.kv_heads(rank_).size();
  multiply(Role::kQuery, Role::kQueryBias, buffers_.query, heads);
  multiply(Role::kKey, Role::kKeyBias, buffers_.key, kv_heads);
  multiply(Role::kValue, Role::kValueBias, buffers_.value, kv_heads);
  norm_and_rotate(Role::kQueryNorm, buffers_.query, heads);
  norm_and_rotate(Role::kKeyNorm, buffers_.key, kv_heads);
  if (config_.query_scaling.beta != 0) {
    device_.queue(ScaleRows{buffers_.query, buffers_.factors, tokens, heads * head_dim});
  }
}

Status Model::feed_forward(int layer, int tokens) {
  norm_hidden(layer_weights(layer).vector(Role::kFeedForwardNorm), tokens);
  if (config_.kind(layer).feed_forward != FeedForward::kDense) {
    experts(layer, tokens);
    TRY(exchange(cut_.expert_shares(), tokens));
    add_expert_bias(layer, tokens);
    return Ok{};
  }
  gated_up(layer, tokens, Role::kGate, Role::kUp, cut_.ffn(rank_).size());
  device_.queue(Matmul{
      layer_weights(layer).matrix(Role::kDown), buffers_.gate, tokens, {buffers_.partials, 0}});
  return exchange(cut_.ffn_shares(), tokens);
}

// silu(gate) * up of `width` columns, left in the gate's buffer.
void Model::gated_up(int layer, int tokens, Role gate, Role up, int width) {
  const LayerWeights& weights = layer_weights(layer);
  device_.queue(Matmul{weights.matrix(gate), buffers_.normed, tokens, buffers_.gate});
  device_.queue(Matmul{weights.matrix(up), buffers_.normed, tokens, buffers_.up});
  device_.queue(SiluMul{.gate = buffers_.gate,
                        .up = buffers_.up,
                        .count = static_cast<size_t>(tokens) * static_cast<size_t>(width),
                        .output = buffers_.gate});
}

// Every rank routes alike; each computes its columns of every chosen expert.
void Model::experts(int layer, int tokens) {
  const LayerWeights& weights = layer_weights(layer);
  const ExpertsConfig& config = config_.experts;
  const bool has_shared = config.shared_ffn > 0;
  const bool is_biased = config_.kind(layer).feed_forward == FeedForward::kBiasedExperts;
  device_.queue(Matmul{weights.matrix(Role::kRouter), buffers_.normed, tokens, buffers_.scores});
  // The softmax of all scores, normalised over the chosen ones, is the softmax of the chosen ones.
  if (is_biased) {
    device_.queue(
        AddBias{buffers_.scores, weights.vector(Role::kRouterBias), tokens, config.count});
  }
  device_.queue(
      Route{.scores = buffers_.scores,
            .bias = weights.vector(Role::kRouterBias),
            .tokens = tokens,
            .experts = config.count,
            .chosen = config.chosen,
            .is_sigmoid = config_.kind(layer).feed_forward == FeedForward::kSigmoidExperts,
            .groups = config.groups,
            .chosen_groups = config.chosen_groups,
            .normalises = config.normalises,
            .factor = config.factor,
            .output = buffers_.chosen,
            .weights = buffers_.chosen_weights});
  device_.queue(
      ExpertsUp{.matrices = &weights.experts,
                .chosen = buffers_.chosen,
                .weights = buffers_.chosen_weights,
                .tokens = tokens,
                .chosen_count = config.chosen,
                .input = buffers_.normed,
                .scratch = buffers_.expert_scratch,
                .output = buffers_.expert_hidden,
                .activation = is_biased ? Activation::kClampedSwiglu : Activation::kSiluMul,
                .limit = config.limit,
                .has_bias = is_biased,
                .gate_bias = weights.vector(Role::kExpertGateBias),
                .up_bias = weights.vector(Role::kExpertUpBias)});
  if (has_shared) {
    gated_up(layer, tokens, Role::kSharedGate, Role::kSharedUp, cut_.shared_ffn(rank_).size());
  }
  device_.queue(ExpertsDown{.matrices = &weights.experts,
                            .chosen = buffers_.chosen,
                            .tokens = tokens,
                            .chosen_count = config.chosen,
                            .input = buffers_.expert_hidden,
                            .has_shared = has_shared,
                            .shared = weights.matrix(Role::kSharedDown),
                            .shared_input = buffers_.gate,
                            .output = {buffers_.partials, 0}});
}

void Model::add_expert_bias(int layer, int tokens) {
  if (config_.kind(layer).feed_forward != FeedForward::kBiasedExperts) return;
  add_sum(tokens);
  device_.queue(AddExpertBias{.bias = layer_weights(layer).vector(Role::kExpertDownBias),
                              .chosen = buffers_.chosen,
                              .weights = buffers_.chosen_weights,
                              .tokens = tokens,
                              .experts = config_.experts.count,
                              .chosen_count = config_.experts.chosen,
                              .columns = config_.hidden,
                              .x = buffers_.hidden});
}

Status Model::exchange(const LeafShares& shares, int tokens) {
  const size_t count = static_cast<size_t>(tokens) * static_cast<size_t>(config_.hidden);
  TRY(device_.wait());
  const auto own = device_.host(buffers_.partials).first(shares.nodes(rank_).size() * count);
  TRY(group_.all_reduce(shares, own, device_.host(buffers_.sum).first(count), tokens));
  has_sum_ = true;
  return Ok{};
}

void Model::add_sum(int tokens) {
  if (!has_sum_) return;
  const size_t count = static_cast<size_t>(tokens) * static_cast<size_t>(config_.hidden);
  device_.queue(Add{.x = {buffers_.sum, 0}, .count = count, .sum = buffers_.hidden});
  has_sum_ = false;
}

void Model::norm_hidden(Slice weight, int tokens) {
  if (has_sum_) {
    device_.queue(AddRmsNorm{.x = {buffers_.sum, 0},
                             .sum = buffers_.hidden,
                             .weight = weight,
                             .tokens = tokens,
                             .columns = config_.hidden,
                             .epsilon = config_.norm_epsilon,
                             .y = buffers_.normed});
  } else {
    device_.queue(RmsNorm{.x = buffers_.hidden,
                          .weight = weight,
                          .tokens = tokens,
                          .columns = config_.hidden,
                          .epsilon = config_.norm_epsilon,
                          .y = buffers_.normed});
  }
  has_sum_ = false;
}

}  // namespace lockstep
