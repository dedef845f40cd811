// Several residual streams (hyper-connections): which mixture of them enters each part of a layer,
// and how its result changes them. Every rank computes all of it. Source: StreamGates in
// device/operations.h, and Glm5NextHyperConnection in Hugging Face transformers.
#include "model/forward/model.h"

namespace lockstep {

// All streams begin as the embedding.
void Model::embed_streams(const Batch& batch) {
  embed(batch, buffers_.normed);
  repeat_in_streams(buffers_.normed, batch.token_count(), buffers_.hidden);
}

void Model::repeat_in_streams(Slice rows, int tokens, Slice to) {
  for (int stream = 0; stream < config_.streams.count; ++stream) {
    device_.queue(CopyColumns{.input = rows,
                              .count = tokens,
                              .columns = config_.hidden,
                              .output = to,
                              .output_stride = config_.streams.count * config_.hidden});
    to.offset += static_cast<size_t>(config_.hidden);
  }
}

// The norm of all streams together has no weights. The gates are used twice: here for what enters,
// and by update_streams() once its result is there.
void Model::norm_streams(int layer, Role norm, BatchHalf& half) {
  add_sum(half);
  const LayerWeights& weights = layer_weights(layer);
  const StreamsConfig& streams = config_.streams;
  const bool is_attention = norm == Role::kAttentionNorm;
  const auto role = [&](Role attention, Role feed_forward) {
    return is_attention ? attention : feed_forward;
  };
  device_.queue(RmsNorm{.x = half.hidden,
                        .weight = half.ones,
                        .tokens = half.tokens,
                        .columns = streams.count * config_.hidden,
                        .epsilon = config_.norm_epsilon,
                        .y = half.streams_normed});
  const Role gates = role(Role::kAttentionStreams, Role::kFeedForwardStreams);
  device_.queue(
      Matmul{half.streams_normed, half.tokens, {{weights.matrix(gates), half.stream_gates}}});
  const Role scale = role(Role::kAttentionStreamsScale, Role::kFeedForwardStreamsScale);
  const Role bias = role(Role::kAttentionStreamsBias, Role::kFeedForwardStreamsBias);
  device_.queue(StreamGates{.x = half.stream_gates,
                            .scale = weights.vector(scale),
                            .bias = weights.vector(bias),
                            .tokens = half.tokens,
                            .streams = streams.count,
                            .rounds = streams.rounds,
                            .epsilon = streams.epsilon});
  device_.queue(CollapseStreams{.input = half.hidden,
                                .weights = half.stream_gates,
                                .weights_stride = streams.gates(),
                                .tokens = half.tokens,
                                .streams = streams.count,
                                .columns = config_.hidden,
                                .output = half.normed});
  queue_norm(half.normed, weights.vector(norm), half.tokens, half.normed);
}

void Model::update_streams(const BatchHalf& half) {
  device_.queue(UpdateStreams{.x = {half.sum, 0},
                              .gates = half.stream_gates,
                              .tokens = half.tokens,
                              .streams = half.streams,
                              .columns = config_.hidden,
                              .output = half.hidden});
}

// Their mean, or a sum by gates that the streams themselves give.
void Model::join_streams(const LayerWeights& weights, int tokens) {
  const StreamsConfig& streams = config_.streams;
  const bool weighs = config_.architecture->weighs_last_streams;
  if (weighs) {
    device_.queue(RmsNorm{.x = buffers_.hidden,
                          .weight = buffers_.ones,
                          .tokens = tokens,
                          .columns = streams.count * config_.hidden,
                          .epsilon = config_.norm_epsilon,
                          .y = buffers_.streams_normed});
    device_.queue(Matmul{buffers_.streams_normed,
                         tokens,
                         {{weights.matrix(Role::kLastStreams), buffers_.stream_gates}}});
    device_.queue(StreamGates{.x = buffers_.stream_gates,
                              .scale = weights.vector(Role::kLastStreamsScale),
                              .bias = weights.vector(Role::kLastStreamsBias),
                              .tokens = tokens,
                              .streams = streams.count,
                              .rounds = 0,
                              .epsilon = streams.epsilon});
  }
  device_.queue(CollapseStreams{.input = buffers_.hidden,
                                .weights = weighs ? buffers_.stream_gates : buffers_.streams_mean,
                                .weights_stride = weighs ? streams.count : 0,
                                .tokens = tokens,
                                .streams = streams.count,
                                .columns = config_.hidden,
                                .output = buffers_.normed});
}

}  // namespace lockstep
