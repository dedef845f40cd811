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
                              .output_stride = config_.stream_columns()});
    to.offset += static_cast<size_t>(config_.hidden);
  }
}

// The matrix from the normed streams to their gates, which have a scale and a bias.
struct Model::GateRoles {
  Role matrix;
  Role scale;
  Role bias;
};

// The norm of all streams together has no weights.
void Model::gate_streams(const LayerWeights& weights, const GateRoles& roles, int rounds,
                         int tokens, const PassBuffers& at) {
  const StreamsConfig& streams = config_.streams;
  device_.queue(RmsNorm{.x = at.hidden,
                        .weight = at.ones,
                        .tokens = tokens,
                        .columns = config_.stream_columns(),
                        .epsilon = config_.norm_epsilon,
                        .y = at.streams_normed});
  device_.queue(
      Matmul{at.streams_normed, tokens, {{weights.matrix(roles.matrix), at.stream_gates}}});
  device_.queue(StreamGates{.x = at.stream_gates,
                            .scale = weights.vector(roles.scale),
                            .bias = weights.vector(roles.bias),
                            .tokens = tokens,
                            .streams = streams.count,
                            .rounds = rounds,
                            .epsilon = streams.epsilon});
}

void Model::collapse_streams(Slice weights, int stride, int tokens, const PassBuffers& at) {
  device_.queue(CollapseStreams{.input = at.hidden,
                                .weights = weights,
                                .weights_stride = stride,
                                .tokens = tokens,
                                .streams = config_.streams.count,
                                .columns = config_.hidden,
                                .output = at.normed});
}

// Each stream normed by itself.
void Model::norm_each_stream(Slice weight, int tokens, Slice x, Slice y) {
  device_.queue(RmsNorm{.x = x,
                        .weight = weight,
                        .tokens = tokens * config_.streams.count,
                        .columns = config_.hidden,
                        .epsilon = config_.norm_epsilon,
                        .y = y,
                        .weights = config_.streams.count});
}

// The matrices from the normed streams to the gates of their mixture, by a latent, and to those by
// which the streams get the result (not after the last layer).
struct Model::MixRoles {
  Role norm;
  Role down;
  Role up;
  std::optional<Role> inject;
};

// The sum over the streams of what the gates let through, element by element
// (Qwen4ExpHyperConnection in Hugging Face transformers). The norms' weights are divided by the
// number of streams.
void Model::mix_streams(const LayerWeights& weights, const MixRoles& roles, int tokens,
                        const PassBuffers& at) {
  const StreamsConfig& streams = config_.streams;
  const int columns = config_.stream_columns();
  norm_each_stream(weights.vector(roles.norm), tokens, at.hidden, at.streams_normed);
  Matmul down{at.streams_normed, tokens, {{weights.matrix(roles.down), at.streams_low}}};
  if (roles.inject) {
    down.products[down.count++] = {weights.matrix(*roles.inject), at.stream_gates};
  }
  device_.queue(down);
  device_.queue(
      Silu{at.streams_low, static_cast<size_t>(tokens) * static_cast<size_t>(streams.low_rank)});
  device_.queue(Matmul{at.streams_low, tokens, {{weights.matrix(roles.up), at.streams_mix}}});
  device_.queue(Activate{.gate = at.streams_mix,
                         .up = at.streams_normed,
                         .tokens = tokens,
                         .columns = columns,
                         .up_stride = columns,
                         .activation = Activation::kSigmoidMul});
  device_.queue(CollapseStreams{.input = at.streams_mix,
                                .weights = at.ones,
                                .tokens = tokens,
                                .streams = streams.count,
                                .columns = config_.hidden,
                                .output = at.normed});
}

// The gates are used twice: here for what enters, and by update_streams() once its result is there.
void Model::norm_streams(int layer, Role norm, BatchHalf& half) {
  add_sum(half);
  const LayerWeights& weights = layer_weights(layer);
  if (config_.architecture->mixes_streams) {
    const MixRoles mix =
        norm == Role::kAttentionNorm
            ? MixRoles{Role::kAttentionStreamsNorm, Role::kAttentionStreamsDown,
                       Role::kAttentionStreamsUp, Role::kAttentionStreamsInject}
            : MixRoles{Role::kFeedForwardStreamsNorm, Role::kFeedForwardStreamsDown,
                       Role::kFeedForwardStreamsUp, Role::kFeedForwardStreamsInject};
    return mix_streams(weights, mix, half.tokens, half);
  }
  const GateRoles roles = norm == Role::kAttentionNorm
                              ? GateRoles{Role::kAttentionStreams, Role::kAttentionStreamsScale,
                                          Role::kAttentionStreamsBias}
                              : GateRoles{Role::kFeedForwardStreams, Role::kFeedForwardStreamsScale,
                                          Role::kFeedForwardStreamsBias};
  gate_streams(weights, roles, config_.streams.rounds, half.tokens, half);
  collapse_streams(half.stream_gates, config_.streams.gates(), half.tokens, half);
  queue_norm(half.normed, weights.vector(norm), half.tokens, half.normed);
}

void Model::update_streams(const BatchHalf& half) {
  if (config_.architecture->mixes_streams) {
    device_.queue(InjectStreams{.x = {half.sum, 0},
                                .gates = half.stream_gates,
                                .tokens = half.tokens,
                                .streams = half.streams,
                                .columns = config_.hidden,
                                .output = half.hidden});
    return;
  }
  device_.queue(UpdateStreams{.x = {half.sum, 0},
                              .gates = half.stream_gates,
                              .tokens = half.tokens,
                              .streams = half.streams,
                              .columns = config_.hidden,
                              .output = half.hidden});
}

// Their mean, or a sum by gates that the streams themselves give; or their mixture.
void Model::join_streams(const LayerWeights& weights, int tokens) {
  if (config_.architecture->mixes_streams) {
    const MixRoles mix{Role::kLastStreamsNorm, Role::kLastStreamsDown, Role::kLastStreamsUp, {}};
    return mix_streams(weights, mix, tokens, buffers_);
  }
  if (!config_.architecture->weighs_last_streams) {
    return collapse_streams(buffers_.streams_mean, 0, tokens, buffers_);
  }
  const GateRoles roles{Role::kLastStreams, Role::kLastStreamsScale, Role::kLastStreamsBias};
  gate_streams(weights, roles, 0, tokens, buffers_);
  collapse_streams(buffers_.stream_gates, config_.streams.count, tokens, buffers_);
}

}  // namespace lockstep
