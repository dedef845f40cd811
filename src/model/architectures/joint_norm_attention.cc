// MiniMax M2: attention whose norms of queries and keys are over all heads at once, and experts
// chosen by sigmoid, without a shared one.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr WeightSpec kJointNormAttention[] = {
    {Role::kAttentionNorm, "model.layers.{L}.input_layernorm.weight", Split::kWhole},
    {Role::kQuery, "model.layers.{L}.self_attn.q_proj.weight", Split::kHeads},
    {Role::kKey, "model.layers.{L}.self_attn.k_proj.weight", Split::kKvHeads},
    {Role::kValue, "model.layers.{L}.self_attn.v_proj.weight", Split::kKvHeads},
    {Role::kQueryNorm, "model.layers.{L}.self_attn.q_norm.weight", Split::kHeads, When::kHeadNorms},
    {Role::kKeyNorm, "model.layers.{L}.self_attn.k_norm.weight", Split::kKvHeads, When::kHeadNorms},
    {Role::kAttentionOut, "model.layers.{L}.self_attn.o_proj.weight", Split::kHeadColumns},
};

constexpr WeightSpec kW123Experts[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.post_attention_layernorm.weight", Split::kWhole},
    {Role::kRouter, "model.layers.{L}.block_sparse_moe.gate.weight", Split::kWhole},
    {Role::kRouterBias, "model.layers.{L}.block_sparse_moe.e_score_correction_bias", Split::kWhole},
    {Role::kExpertGate, "model.layers.{L}.block_sparse_moe.experts.{E}.w1.weight",
     Split::kExpertFfn},
    {Role::kExpertUp, "model.layers.{L}.block_sparse_moe.experts.{E}.w3.weight", Split::kExpertFfn},
    {Role::kExpertDown, "model.layers.{L}.block_sparse_moe.experts.{E}.w2.weight",
     Split::kExpertFfnColumns},
};

constexpr LayerKind kJointNormLayer = {.feed_forward = FeedForward::kExperts,
                                       .mixer_weights = kJointNormAttention,
                                       .feed_forward_weights = kW123Experts,
                                       .scores = RouterForm::kSigmoid};

}  // namespace

constexpr Architecture kMiniMaxM2 = {.name = "MiniMaxM2ForCausalLM",
                                     .model_types = {"minimax_m2"},
                                     .shared = kSharedWeights,
                                     .dense = kJointNormLayer,
                                     .sparse = kJointNormLayer,
                                     .head_norms = Has::kAsConfigured,
                                     .joins_head_norms = true,
                                     .expert_width = "intermediate_size"};

}  // namespace lockstep
