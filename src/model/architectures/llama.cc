#include "model/architectures/llama.h"

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

constexpr LayerKind kLayers[] = {{
    .name = "",
    .mixer = Mixer::kGroupedAttention,
    .feed_forward = FeedForward::kDense,
    .state = StateKind::kPaged,
    .weights = kDense,
}};

}  // namespace

constexpr Architecture kLlama = {.name = "LlamaForCausalLM", .shared = kShared, .layers = kLayers};

}  // namespace lockstep
