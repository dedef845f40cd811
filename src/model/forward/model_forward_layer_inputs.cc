// The input of its own that each layer has from every token (Gemma 3n and 4, small models): made
// once in a pass, by every rank, and added at the end of each layer. Source: Gemma4TextModel in
// Hugging Face transformers.
#include "model/forward/model.h"

namespace lockstep {

// The stored part of an input, times the root of its length, and the normed part that is made from
// the embedding; their sum is divided by the root of two, which is in both factors. The reference
// divides the second part by the root of the hidden size before the norm: here its epsilon is as
// much larger.
void Model::make_layer_inputs(int tokens) {
  const auto count = static_cast<size_t>(tokens) * static_cast<size_t>(config_.layer_inputs());
  device_.queue(CopyRows{.input = {buffers_.sum, static_cast<size_t>(config_.hidden)},
                         .rows = buffers_.places,
                         .count = tokens,
                         .columns = config_.layer_inputs(),
                         .output = buffers_.layer_inputs,
                         .input_stride = config_.embedded()});
  device_.queue(Scale{buffers_.layer_inputs, buffers_.layer_factor, count});
  device_.queue(Matmul{buffers_.hidden,
                       tokens,
                       {{weights_.shared.matrix(Role::kLayerProjection), buffers_.layer_parts}}});
  device_.queue(RmsNorm{.x = buffers_.layer_parts,
                        .weight = weights_.shared.vector(Role::kLayerProjectionNorm),
                        .tokens = tokens * config_.layers,
                        .columns = config_.layer_input,
                        .epsilon = config_.norm_epsilon * static_cast<float>(config_.hidden),
                        .y = buffers_.layer_parts,
                        .stride = config_.layer_input});
  device_.queue(Add{.x = buffers_.layer_parts, .count = count, .sum = buffers_.layer_inputs});
}

// The hidden state opens a gate for the layer's input, which is mapped back, normed and added.
void Model::add_layer_input(int layer, BatchHalf& half) {
  add_sum(half);
  const LayerWeights& weights = layer_weights(layer);
  const auto own = static_cast<size_t>(layer) * static_cast<size_t>(config_.layer_input);
  device_.queue(
      Matmul{half.hidden, half.tokens, {{weights.matrix(Role::kLayerInputGate), half.layer_gate}}});
  device_.queue(Activate{.gate = half.layer_gate,
                         .up = {half.layer_inputs.buffer, half.layer_inputs.offset + own},
                         .tokens = half.tokens,
                         .columns = config_.layer_input,
                         .up_stride = config_.layer_inputs(),
                         .activation = Activation::kGeluMul});
  device_.queue(
      Matmul{half.layer_gate, half.tokens, {{weights.matrix(Role::kLayerInputOut), half.normed}}});
  queue_norm(half.normed, weights.vector(Role::kLayerInputNorm), half.tokens, half.normed);
  const size_t count = static_cast<size_t>(half.tokens) * static_cast<size_t>(config_.hidden);
  device_.queue(Add{.x = half.normed, .count = count, .sum = half.hidden});
}

}  // namespace lockstep
