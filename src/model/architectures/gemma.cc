// Gemma 4: norms before and after both parts of a layer, windows on most layers, and on the others
// larger heads whose values may be their keys. Experts come in addition to the dense part and have
// norms of their own. In the small models each layer has an input of its own from every token, and
// the last layers attend to keys and values of earlier ones.
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr WeightSpec kGemmaShared[] = {
    {Role::kEmbedding, "model.embed_tokens.weight", Split::kVocabulary},
    {Role::kLayerEmbedding, "model.embed_tokens_per_layer.weight", Split::kVocabulary,
     When::kLayerInputs},
    {Role::kLayerProjection, "model.per_layer_model_projection.weight", Split::kWhole,
     When::kLayerInputs},
    {Role::kLayerProjectionNorm, "model.per_layer_projection_norm.weight", Split::kWhole,
     When::kLayerInputs},
    {Role::kFinalNorm, "model.norm.weight", Split::kWhole},
    {Role::kLogits, "lm_head.weight", Split::kVocabulary, When::kUntied},
};

constexpr WeightSpec kGemmaAttention[] = {
    {Role::kAttentionNorm, "model.layers.{L}.input_layernorm.weight", Split::kWhole},
    {Role::kQuery, "model.layers.{L}.self_attn.q_proj.weight", Split::kHeads},
    {Role::kKey, "model.layers.{L}.self_attn.k_proj.weight", Split::kKvHeads, When::kOwnKeys},
    {Role::kValue, "model.layers.{L}.self_attn.v_proj.weight", Split::kKvHeads, When::kOwnValues},
    {Role::kQueryNorm, "model.layers.{L}.self_attn.q_norm.weight", Split::kWhole},
    {Role::kKeyNorm, "model.layers.{L}.self_attn.k_norm.weight", Split::kWhole, When::kOwnKeys},
    {Role::kAttentionOut, "model.layers.{L}.self_attn.o_proj.weight", Split::kHeadColumns},
    {Role::kAttentionPostNorm, "model.layers.{L}.post_attention_layernorm.weight", Split::kWhole},
};

constexpr WeightSpec kGemmaFfn[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.pre_feedforward_layernorm.weight", Split::kWhole},
    {Role::kGate, "model.layers.{L}.mlp.gate_proj.weight", Split::kFfn},
    {Role::kUp, "model.layers.{L}.mlp.up_proj.weight", Split::kFfn},
    {Role::kDown, "model.layers.{L}.mlp.down_proj.weight", Split::kFfnColumns},
};

// The dense part is cut like the experts, so that the sums of both can travel together.
constexpr WeightSpec kGemmaExperts[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.pre_feedforward_layernorm.weight", Split::kWhole},
    {Role::kGate, "model.layers.{L}.mlp.gate_proj.weight", Split::kSharedFfn},
    {Role::kUp, "model.layers.{L}.mlp.up_proj.weight", Split::kSharedFfn},
    {Role::kDown, "model.layers.{L}.mlp.down_proj.weight", Split::kSharedFfnColumns},
    {Role::kRouterNorm, "model.layers.{L}.router.scale", Split::kWhole},
    {Role::kRouter, "model.layers.{L}.router.proj.weight", Split::kWhole},
    {Role::kExpertScales, "model.layers.{L}.router.per_expert_scale", Split::kWhole},
    {Role::kExpertsNorm, "model.layers.{L}.pre_feedforward_layernorm_2.weight", Split::kWhole},
    {Role::kExpertGate, "model.layers.{L}.experts.{E}.gate_proj.weight", Split::kExpertFfn},
    {Role::kExpertUp, "model.layers.{L}.experts.{E}.up_proj.weight", Split::kExpertFfn},
    {Role::kExpertDown, "model.layers.{L}.experts.{E}.down_proj.weight", Split::kExpertFfnColumns},
    {Role::kDensePostNorm, "model.layers.{L}.post_feedforward_layernorm_1.weight", Split::kWhole},
    {Role::kExpertsPostNorm, "model.layers.{L}.post_feedforward_layernorm_2.weight", Split::kWhole},
};

// These follow the feed-forward part, dense or not.
constexpr WeightSpec kGemmaEveryLayer[] = {
    {Role::kFeedForwardPostNorm, "model.layers.{L}.post_feedforward_layernorm.weight",
     Split::kWhole},
    {Role::kLayerInputGate, "model.layers.{L}.per_layer_input_gate.weight", Split::kWhole,
     When::kLayerInputs},
    {Role::kLayerInputOut, "model.layers.{L}.per_layer_projection.weight", Split::kWhole,
     When::kLayerInputs},
    {Role::kLayerInputNorm, "model.layers.{L}.post_per_layer_input_norm.weight", Split::kWhole,
     When::kLayerInputs},
    {Role::kLayerScale, "model.layers.{L}.layer_scalar", Split::kWhole},
};

constexpr LayerKind kGemmaDense = {
    .mixer_weights = kGemmaAttention, .feed_forward_weights = kGemmaFfn, .gating = Gating::kGelu};
constexpr LayerKind kGemmaSparse = {.feed_forward = FeedForward::kExperts,
                                    .mixer_weights = kGemmaAttention,
                                    .feed_forward_weights = kGemmaExperts,
                                    .gating = Gating::kGelu};

}  // namespace

constexpr Architecture kGemma4 = {.name = "Gemma4ForCausalLM",
                                  .model_types = {"gemma4_text"},
                                  .shared = kGemmaShared,
                                  .dense = kGemmaDense,
                                  .sparse = kGemmaSparse,
                                  .every_layer = kGemmaEveryLayer,
                                  .has_own_full_layers = true,
                                  .norms_values = true,
                                  .scales_scores = false,
                                  .scales_embedding = true,
                                  .experts_flag = "enable_moe_block"};

}  // namespace lockstep
