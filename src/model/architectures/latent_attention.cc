// Models with latent attention.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

// The projections to the latents are cut if that is worth an exchange (model/load/latent_cut.h);
// those from the latents to the heads are cut by head.
constexpr WeightSpec kLatent[] = {
    {Role::kAttentionNorm, "model.layers.{L}.input_layernorm.weight", Split::kWhole},
    {Role::kQuery, "model.layers.{L}.self_attn.q_proj.weight", Split::kHeads, When::kNoQueryLatent},
    {Role::kQueryDown, "model.layers.{L}.self_attn.q_a_proj.weight", Split::kQueryLatent,
     When::kQueryLatent},
    {Role::kQueryDownNorm, "model.layers.{L}.self_attn.q_a_layernorm.weight", Split::kWhole,
     When::kQueryLatent},
    {Role::kQuery, "model.layers.{L}.self_attn.q_b_proj.weight", Split::kHeads, When::kQueryLatent},
    {Role::kKvDown, "model.layers.{L}.self_attn.kv_a_proj_with_mqa.weight", Split::kKvLatent},
    {Role::kKvDownNorm, "model.layers.{L}.self_attn.kv_a_layernorm.weight", Split::kWhole},
    {Role::kKvUp, "model.layers.{L}.self_attn.kv_b_proj.weight", Split::kHeads},
    {Role::kAttentionOut, "model.layers.{L}.self_attn.o_proj.weight", Split::kHeadColumns},
};

constexpr LayerKind kLatentDense = {.mixer = Mixer::kLatentAttention,
                                    .mixer_weights = kLatent,
                                    .feed_forward_weights = kDenseFfnWeights};
constexpr LayerKind kSparse = {.mixer = Mixer::kLatentAttention,
                               .feed_forward = FeedForward::kExperts,
                               .mixer_weights = kLatent,
                               .feed_forward_weights = kSigmoidExpertWeights,
                               .scores = RouterScores::kSigmoid};

}  // namespace

// config.json does not give the epsilon of the inner norms (Hugging Face transformers,
// DeepseekV3RMSNorm).
constexpr Architecture kDeepseekV3 = {.name = "DeepseekV3ForCausalLM",
                                      .model_types = {"deepseek_v3", "kimi_k2"},
                                      .shared = kSharedWeights,
                                      .dense = kLatentDense,
                                      .sparse = kSparse,
                                      .latent_norm_epsilon = 1e-6f};
constexpr Architecture kGlm4MoeLite = {.name = "Glm4MoeLiteForCausalLM",
                                       .model_types = {"glm4_moe_lite"},
                                       .shared = kSharedWeights,
                                       .dense = kLatentDense,
                                       .sparse = kSparse};

}  // namespace lockstep
