// Kimi Linear: three of four layers keep a state by the delta rule with a decay for each channel
// (https://arxiv.org/abs/2510.26692), the others have latent attention without rotation.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr WeightSpec kBlockSparseExperts[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.post_attention_layernorm.weight", Split::kWhole},
    {Role::kRouter, "model.layers.{L}.block_sparse_moe.gate.weight", Split::kWhole},
    {Role::kRouterBias, "model.layers.{L}.block_sparse_moe.gate.e_score_correction_bias",
     Split::kWhole},
    {Role::kExpertGate, "model.layers.{L}.block_sparse_moe.experts.{E}.w1.weight",
     Split::kExpertFfn},
    {Role::kExpertUp, "model.layers.{L}.block_sparse_moe.experts.{E}.w3.weight", Split::kExpertFfn},
    {Role::kExpertDown, "model.layers.{L}.block_sparse_moe.experts.{E}.w2.weight",
     Split::kExpertFfnColumns},
    {Role::kSharedGate, "model.layers.{L}.block_sparse_moe.shared_experts.gate_proj.weight",
     Split::kSharedFfn, When::kSharedExperts},
    {Role::kSharedUp, "model.layers.{L}.block_sparse_moe.shared_experts.up_proj.weight",
     Split::kSharedFfn, When::kSharedExperts},
    {Role::kSharedDown, "model.layers.{L}.block_sparse_moe.shared_experts.down_proj.weight",
     Split::kSharedFfnColumns, When::kSharedExperts},
};

constexpr LayerKind kUnrotatedDense = {.mixer = Mixer::kLatentAttention,
                                       .mixer_weights = kLatentAttention,
                                       .feed_forward_weights = kDenseFfnWeights};
constexpr LayerKind kUnrotatedSparse = {.mixer = Mixer::kLatentAttention,
                                        .feed_forward = FeedForward::kExperts,
                                        .mixer_weights = kLatentAttention,
                                        .feed_forward_weights = kBlockSparseExperts,
                                        .scores = RouterForm::kSigmoid};

}  // namespace

constexpr Architecture kKimiLinear = {.name = "KimiLinearForCausalLM",
                                      .model_types = {"kimi_linear"},
                                      .shared = kSharedWeights,
                                      .dense = kUnrotatedDense,
                                      .sparse = kUnrotatedSparse,
                                      .recurrent = {.weights = kChannelDelta},
                                      .decays_channels = true};

}  // namespace lockstep
