// GLM-5.3-Flash: several residual streams (hyper-connections), layers that keep a state by the
// delta rule with a decay for each channel, and latent attention without rotation over positions
// that an index of pools chooses. Source: modeling_glm5_next.py in Hugging Face transformers.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr WeightSpec kStreamWeights[] = {
    {Role::kAttentionStreams, "model.layers.{L}.hc_attn_fn.weight", Split::kWhole, When::kStreams},
    {Role::kAttentionStreamsScale, "model.layers.{L}.hc_attn_scale", Split::kWhole, When::kStreams},
    {Role::kAttentionStreamsBias, "model.layers.{L}.hc_attn_base", Split::kWhole, When::kStreams},
    {Role::kFeedForwardStreams, "model.layers.{L}.hc_ffn_fn.weight", Split::kWhole, When::kStreams},
    {Role::kFeedForwardStreamsScale, "model.layers.{L}.hc_ffn_scale", Split::kWhole,
     When::kStreams},
    {Role::kFeedForwardStreamsBias, "model.layers.{L}.hc_ffn_base", Split::kWhole, When::kStreams},
};

constexpr LayerKind kStreamedDense = {.mixer = Mixer::kLatentAttention,
                                      .mixer_weights = kLatentAttention,
                                      .feed_forward_weights = kDenseFfnWeights,
                                      .gating = Gating::kClippedSilu};
constexpr LayerKind kStreamedSparse = {.mixer = Mixer::kLatentAttention,
                                       .feed_forward = FeedForward::kExperts,
                                       .mixer_weights = kLatentAttention,
                                       .feed_forward_weights = kSigmoidExpertWeights,
                                       .scores = RouterScores::kSigmoid,
                                       .gating = Gating::kClippedSilu};

}  // namespace

constexpr Architecture kGlm5Next = {.name = "Glm5NextForConditionalGeneration",
                                    .model_types = {"glm5_next_text", "glm5_next"},
                                    .shared = kSharedWeights,
                                    .dense = kStreamedDense,
                                    .sparse = kStreamedSparse,
                                    .every_layer = kStreamWeights,
                                    .recurrent = {.weights = kChannelDelta},
                                    .decays_channels = true,
                                    .has_indexer = true,
                                    .has_streams = true,
                                    .draft = {.weights = kNextDraftWeights}};

}  // namespace lockstep
