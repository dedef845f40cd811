// The part of the forward pass for layers that keep a state by the delta rule: Qwen3-Next and Qwen
// 3.5 (https://arxiv.org/abs/2412.06464, and the convolutions and gates of their published code),
// and Kimi Linear (https://arxiv.org/abs/2510.26692) and GLM-5.3.
#include <cmath>

#include "model/forward/model.h"

namespace lockstep {
namespace {

// The norms of queries and keys add it to the sum of squares, not to the mean.
constexpr float kUnitEpsilon = 1e-6f;

}  // namespace

// x / sqrt(sum of x^2 + e) is an RMS norm with the epsilon e / n and the weight 1 / sqrt(n);
// queries are also divided by sqrt(n).
void Model::write_delta_norms() {
  const auto n = static_cast<size_t>(config_.delta->key_dim);
  std::vector<float> weights(n, 1.0f / static_cast<float>(n));
  weights.resize(2 * n, 1.0f / std::sqrt(static_cast<float>(n)));
  device_.write(buffers_.delta_query_norm, std::as_bytes(std::span<const float>(weights)));
}

void Model::delta_layer(int layer, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const DeltaConfig& delta = *config_.delta;
  const DeltaShape shape = delta_shape(delta, cut_, rank_);
  if (delta.groups_inputs) {
    project_grouped_delta(layer, half);
  } else if (delta.low_rank > 0) {
    project_low_rank_delta(layer, half);
  } else {
    project_delta(layer, half);
  }
  convolve(layer, shape, half);
  const float epsilon = kUnitEpsilon / static_cast<float>(delta.key_dim);
  const auto norm = [&](Slice x, Slice weight) {
    device_.queue(RmsNorm{x, weight, half.tokens * shape.key_heads, delta.key_dim, epsilon, x,
                          delta.key_dim});
  };
  norm(half.delta_query, half.delta_query_norm);
  norm(half.delta_key, half.delta_key_norm);
  const auto rates = static_cast<size_t>(half.tokens) * static_cast<size_t>(shape.value_heads);
  device_.queue(Sigmoid{half.delta_rate, rates});
  device_.queue(Decay{half.delta_decay, weights.vector(Role::kDeltaDecayBias),
                      weights.vector(Role::kDeltaDecayRate), half.tokens,
                      shape.value_heads * delta.decays(), delta.least_decay});
  device_.queue(DeltaRule{.states = state_slots(layer, half),
                          .state_offset = shape.heads_at,
                          .query = half.delta_query,
                          .key = half.delta_key,
                          .value = half.delta_value,
                          .decay = half.delta_decay,
                          .rate = half.delta_rate,
                          .tokens = half.tokens,
                          .key_heads = shape.key_heads,
                          .value_heads = shape.value_heads,
                          .key_dim = delta.key_dim,
                          .value_dim = delta.value_dim,
                          .decays = delta.decays(),
                          .output = half.mixed});
  device_.queue(RmsNorm{half.mixed, weights.vector(Role::kDeltaNorm),
                        half.tokens * shape.value_heads, delta.value_dim, config_.norm_epsilon,
                        half.mixed, delta.value_dim});
  const int values = shape.value_heads * delta.value_dim;
  device_.queue(Activate{
      .gate = half.delta_gate,
      .up = half.mixed,
      .tokens = half.tokens,
      .columns = values,
      .up_stride = values,
      .activation = delta.gates_by_sigmoid ? Activation::kSigmoidMul : Activation::kSiluMul});
  device_.queue(Matmul{
      half.delta_gate, half.tokens, {{weights.matrix(Role::kDeltaOut), {half.partials, 0}}}});
}

void Model::project_delta(int layer, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  device_.queue(Matmul{half.normed,
                       half.tokens,
                       {{weights.delta_inputs[0], half.delta_query},
                        {weights.delta_inputs[1], half.delta_key},
                        {weights.delta_inputs[2], half.delta_value}},
                       3});
  device_.queue(Matmul{half.normed,
                       half.tokens,
                       {{weights.matrix(Role::kDeltaGate), half.delta_gate},
                        {weights.matrix(Role::kDeltaRate), half.delta_rate},
                        {weights.matrix(Role::kDeltaDecay), half.delta_decay}},
                       3});
}

void Model::project_low_rank_delta(int layer, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  device_.queue(Matmul{half.normed,
                       half.tokens,
                       {{weights.matrix(Role::kDeltaQuery), half.delta_query},
                        {weights.matrix(Role::kDeltaKey), half.delta_key},
                        {weights.matrix(Role::kDeltaValue), half.delta_value}},
                       3});
  device_.queue(Matmul{half.normed,
                       half.tokens,
                       {{weights.matrix(Role::kDeltaGateDown), half.delta_gate_low},
                        {weights.matrix(Role::kDeltaDecayDown), half.delta_decay_low},
                        {weights.matrix(Role::kDeltaRate), half.delta_rate}},
                       3});
  device_.queue(Matmul{
      half.delta_gate_low, half.tokens, {{weights.matrix(Role::kDeltaGate), half.delta_gate}}});
  device_.queue(Matmul{
      half.delta_decay_low, half.tokens, {{weights.matrix(Role::kDeltaDecay), half.delta_decay}}});
}

// The rows of a key head are its query, its key, its values and their gates; and the rates of its
// value heads, then their decays.
void Model::project_grouped_delta(int layer, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const DeltaConfig& delta = *config_.delta;
  const int heads = cut_.delta_heads(rank_).size(), of_key = delta.values_per_key();
  const int values = of_key * delta.value_dim, group = delta.group_channels() + values;
  device_.queue(Matmul{half.normed,
                       half.tokens,
                       {{weights.matrix(Role::kDeltaGroupedInput), half.delta_grouped},
                        {weights.matrix(Role::kDeltaGroupedRates), half.delta_grouped_rates}},
                       2});
  const auto take = [&](Slice from, int stride, int begin, int columns, Slice to) {
    from.offset += static_cast<size_t>(begin);
    device_.queue(CopyColumns{.input = from,
                              .count = half.tokens * heads,
                              .columns = columns,
                              .output = to,
                              .output_stride = columns,
                              .input_stride = stride});
  };
  take(half.delta_grouped, group, 0, delta.key_dim, half.delta_query);
  take(half.delta_grouped, group, delta.key_dim, delta.key_dim, half.delta_key);
  take(half.delta_grouped, group, 2 * delta.key_dim, values, half.delta_value);
  take(half.delta_grouped, group, 2 * delta.key_dim + values, values, half.delta_gate);
  take(half.delta_grouped_rates, 2 * of_key, 0, of_key, half.delta_rate);
  take(half.delta_grouped_rates, 2 * of_key, of_key, of_key, half.delta_decay);
}

void Model::convolve(int layer, const DeltaShape& shape, BatchHalf& half) {
  const LayerWeights& weights = layer_weights(layer);
  const std::array rows{half.delta_query, half.delta_key, half.delta_value};
  Convolve op{
      .states = state_slots(layer, half), .taps = config_.delta->taps, .tokens = half.tokens};
  for (size_t i = 0; i < rows.size(); ++i) {
    op.parts[i] = {.x = rows[i],
                   .weights = weights.delta_convolutions[i],
                   .channels = shape.channels[i],
                   .state_offset = shape.past[i],
                   .y = rows[i]};
  }
  device_.queue(op);
}

StateSlots Model::state_slots(int layer, const BatchHalf& half) const {
  return {.memory = recurrent_.layers[static_cast<size_t>(layer)],
          .stride = recurrent_.stride,
          .from = half.states_from,
          .to = half.states_to};
}

}  // namespace lockstep
