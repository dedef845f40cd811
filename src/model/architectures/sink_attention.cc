// gpt-oss: attention with sinks, biases everywhere, and experts with a clamped activation.
// https://arxiv.org/abs/2508.10925
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr WeightSpec kSinkAttention[] = {
    {Role::kAttentionNorm, "model.layers.{L}.input_layernorm.weight", Split::kWhole},
    {Role::kQuery, "model.layers.{L}.self_attn.q_proj.weight", Split::kHeads},
    {Role::kKey, "model.layers.{L}.self_attn.k_proj.weight", Split::kKvHeads},
    {Role::kValue, "model.layers.{L}.self_attn.v_proj.weight", Split::kKvHeads},
    {Role::kQueryBias, "model.layers.{L}.self_attn.q_proj.bias", Split::kHeads},
    {Role::kKeyBias, "model.layers.{L}.self_attn.k_proj.bias", Split::kKvHeads},
    {Role::kValueBias, "model.layers.{L}.self_attn.v_proj.bias", Split::kKvHeads},
    {Role::kSinks, "model.layers.{L}.self_attn.sinks", Split::kHeads},
    {Role::kAttentionOut, "model.layers.{L}.self_attn.o_proj.weight", Split::kHeadColumns},
    {Role::kAttentionOutBias, "model.layers.{L}.self_attn.o_proj.bias", Split::kWhole},
};

// Biases of products that are summed over ranks are whole: they are added once, after the sum.
constexpr WeightSpec kBiasedExperts[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.post_attention_layernorm.weight", Split::kWhole},
    {Role::kRouter, "model.layers.{L}.mlp.router.weight", Split::kWhole},
    {Role::kRouterBias, "model.layers.{L}.mlp.router.bias", Split::kWhole},
    {Role::kExpertGate, "model.layers.{L}.mlp.experts.{E}.gate_proj.weight", Split::kExpertFfn},
    {Role::kExpertGateBias, "model.layers.{L}.mlp.experts.{E}.gate_proj.bias", Split::kExpertFfn},
    {Role::kExpertUp, "model.layers.{L}.mlp.experts.{E}.up_proj.weight", Split::kExpertFfn},
    {Role::kExpertUpBias, "model.layers.{L}.mlp.experts.{E}.up_proj.bias", Split::kExpertFfn},
    {Role::kExpertDown, "model.layers.{L}.mlp.experts.{E}.down_proj.weight",
     Split::kExpertFfnColumns},
    {Role::kExpertDownBias, "model.layers.{L}.mlp.experts.{E}.down_proj.bias", Split::kWhole},
};

constexpr LayerKind kLayer = {.feed_forward = FeedForward::kExperts,
                              .mixer_weights = kSinkAttention,
                              .feed_forward_weights = kBiasedExperts,
                              .gating = Gating::kClampedSwiglu};

}  // namespace

constexpr Architecture kGptOss = {.name = "GptOssForCausalLM",
                                  .model_types = {"gpt_oss"},
                                  .shared = kSharedWeights,
                                  .dense = kLayer,
                                  .sparse = kLayer,
                                  .qkv_bias = Has::kYes,
                                  .expert_width = "intermediate_size"};

}  // namespace lockstep
