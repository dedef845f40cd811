// GLM-5.3-Flash: several residual streams (hyper-connections), layers that keep a state by the
// delta rule with a decay for each channel, and latent attention without rotation over positions
// that an index of pools chooses. Source: modeling_glm5_next.py in Hugging Face transformers.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr LayerKind kStreamedDense = {.mixer = Mixer::kLatentAttention,
                                      .mixer_weights = kLatentAttention,
                                      .feed_forward_weights = kDenseFfnWeights,
                                      .gating = Gating::kClippedSilu};
constexpr LayerKind kStreamedSparse = {.mixer = Mixer::kLatentAttention,
                                       .feed_forward = FeedForward::kExperts,
                                       .mixer_weights = kLatentAttention,
                                       .feed_forward_weights = kSigmoidExpertWeights,
                                       .scores = RouterForm::kSigmoid,
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
