// Gemma 4: norms before and after both parts of a layer, windows on most layers, and on the others
// larger heads whose values may be their keys.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr WeightSpec kGemmaAttention[] = {
    {Role::kAttentionNorm, "model.layers.{L}.input_layernorm.weight", Split::kWhole},
    {Role::kQuery, "model.layers.{L}.self_attn.q_proj.weight", Split::kHeads},
    {Role::kKey, "model.layers.{L}.self_attn.k_proj.weight", Split::kKvHeads},
    {Role::kValue, "model.layers.{L}.self_attn.v_proj.weight", Split::kKvHeads, When::kOwnValues},
    {Role::kQueryNorm, "model.layers.{L}.self_attn.q_norm.weight", Split::kWhole},
    {Role::kKeyNorm, "model.layers.{L}.self_attn.k_norm.weight", Split::kWhole},
    {Role::kAttentionOut, "model.layers.{L}.self_attn.o_proj.weight", Split::kHeadColumns},
    {Role::kAttentionPostNorm, "model.layers.{L}.post_attention_layernorm.weight", Split::kWhole},
};

constexpr WeightSpec kGemmaFfn[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.pre_feedforward_layernorm.weight", Split::kWhole},
    {Role::kGate, "model.layers.{L}.mlp.gate_proj.weight", Split::kFfn},
    {Role::kUp, "model.layers.{L}.mlp.up_proj.weight", Split::kFfn},
    {Role::kDown, "model.layers.{L}.mlp.down_proj.weight", Split::kFfnColumns},
    {Role::kFeedForwardPostNorm, "model.layers.{L}.post_feedforward_layernorm.weight",
     Split::kWhole},
    {Role::kLayerScale, "model.layers.{L}.layer_scalar", Split::kWhole},
};

constexpr LayerKind kGemmaLayer = {
    .mixer_weights = kGemmaAttention, .feed_forward_weights = kGemmaFfn, .gating = Gating::kGelu};

}  // namespace

constexpr Architecture kGemma4 = {.name = "Gemma4ForCausalLM",
                                  .model_types = {"gemma4_text"},
                                  .shared = kSharedWeights,
                                  .dense = kGemmaLayer,
                                  .sparse = kGemmaLayer,
                                  .has_own_full_layers = true,
                                  .norms_values = true,
                                  .scales_scores = false,
                                  .scales_embedding = true};

}  // namespace lockstep
