#include "model/architectures/dense.h"

namespace lockstep {
namespace {

constexpr WeightSpec kShared[] = {
    {Role::kEmbedding, "model.embed_tokens.weight", Split::kVocabulary},
    {Role::kFinalNorm, "model.norm.weight", Split::kWhole},
    {Role::kLogits, "lm_head.weight", Split::kVocabulary},
};

constexpr WeightSpec kDense[] = {
    {Role::kAttentionNorm, "model.layers.{L}.input_layernorm.weight", Split::kWhole},
    {Role::kQuery, "model.layers.{L}.self_attn.q_proj.weight", Split::kHeads},
    {Role::kKey, "model.layers.{L}.self_attn.k_proj.weight", Split::kKvHeads},
    {Role::kValue, "model.layers.{L}.self_attn.v_proj.weight", Split::kKvHeads},
    {Role::kAttentionOut, "model.layers.{L}.self_attn.o_proj.weight", Split::kHeadColumns},
    {Role::kFeedForwardNorm, "model.layers.{L}.post_attention_layernorm.weight", Split::kWhole},
    {Role::kGate, "model.layers.{L}.mlp.gate_proj.weight", Split::kFfn},
    {Role::kUp, "model.layers.{L}.mlp.up_proj.weight", Split::kFfn},
    {Role::kDown, "model.layers.{L}.mlp.down_proj.weight", Split::kFfnColumns},
};

// Beside those of kDense.
constexpr WeightSpec kQkvBias[] = {
    {Role::kQueryBias, "model.layers.{L}.self_attn.q_proj.bias", Split::kHeads},
    {Role::kKeyBias, "model.layers.{L}.self_attn.k_proj.bias", Split::kKvHeads},
    {Role::kValueBias, "model.layers.{L}.self_attn.v_proj.bias", Split::kKvHeads},
};
constexpr WeightSpec kQueryKeyNorm[] = {
    {Role::kQueryNorm, "model.layers.{L}.self_attn.q_norm.weight", Split::kWhole},
    {Role::kKeyNorm, "model.layers.{L}.self_attn.k_norm.weight", Split::kWhole},
};

constexpr LayerKind kPlainLayers[] = {{.name = "",
                                       .mixer = Mixer::kGroupedAttention,
                                       .feed_forward = FeedForward::kDense,
                                       .state = StateKind::kPaged,
                                       .weights = kDense}};
constexpr LayerKind kBiasedLayers[] = {{.name = "",
                                        .mixer = Mixer::kGroupedAttention,
                                        .feed_forward = FeedForward::kDense,
                                        .state = StateKind::kPaged,
                                        .qkv_bias = true,
                                        .weights = kDense,
                                        .more_weights = kQkvBias}};
constexpr LayerKind kNormedLayers[] = {{.name = "",
                                        .mixer = Mixer::kGroupedAttention,
                                        .feed_forward = FeedForward::kDense,
                                        .state = StateKind::kPaged,
                                        .query_key_norm = true,
                                        .weights = kDense,
                                        .more_weights = kQueryKeyNorm}};

}  // namespace

constexpr Architecture kLlama = {
    .name = "LlamaForCausalLM", .shared = kShared, .layers = kPlainLayers};
constexpr Architecture kMistral = {
    .name = "MistralForCausalLM", .shared = kShared, .layers = kPlainLayers};
constexpr Architecture kMinistral3 = {
    .name = "Ministral3ForCausalLM", .shared = kShared, .layers = kPlainLayers};
constexpr Architecture kQwen2 = {
    .name = "Qwen2ForCausalLM", .shared = kShared, .layers = kBiasedLayers};
constexpr Architecture kQwen3 = {
    .name = "Qwen3ForCausalLM", .shared = kShared, .layers = kNormedLayers};

}  // namespace lockstep
