// Models with latent attention over positions that an index chooses.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

// The index is whole on every rank, so that all choose alike without an exchange.
constexpr WeightSpec kSparseLatent[] = {
    {Role::kAttentionNorm, "model.layers.{L}.input_layernorm.weight", Split::kWhole},
    {Role::kQueryDown, "model.layers.{L}.self_attn.q_a_proj.weight", Split::kQueryLatent},
    {Role::kQueryDownNorm, "model.layers.{L}.self_attn.q_a_layernorm.weight", Split::kWhole},
    {Role::kQuery, "model.layers.{L}.self_attn.q_b_proj.weight", Split::kHeads},
    {Role::kKvDown, "model.layers.{L}.self_attn.kv_a_proj_with_mqa.weight", Split::kKvLatent},
    {Role::kKvDownNorm, "model.layers.{L}.self_attn.kv_a_layernorm.weight", Split::kWhole},
    {Role::kKvUp, "model.layers.{L}.self_attn.kv_b_proj.weight", Split::kHeads},
    {Role::kAttentionOut, "model.layers.{L}.self_attn.o_proj.weight", Split::kHeadColumns},
    {Role::kIndexQuery, "model.layers.{L}.self_attn.indexer.wq_b.weight", Split::kWhole,
     When::kIndexer},
    {Role::kIndexKey, "model.layers.{L}.self_attn.indexer.wk.weight", Split::kWhole,
     When::kIndexer},
    {Role::kIndexKeyNorm, "model.layers.{L}.self_attn.indexer.k_norm.weight", Split::kWhole,
     When::kIndexer},
    {Role::kIndexKeyNormBias, "model.layers.{L}.self_attn.indexer.k_norm.bias", Split::kWhole,
     When::kIndexer},
    {Role::kIndexWeights, "model.layers.{L}.self_attn.indexer.weights_proj.weight", Split::kWhole,
     When::kIndexer},
};

constexpr LayerKind kSparseLatentDense = {.mixer = Mixer::kLatentAttention,
                                          .mixer_weights = kSparseLatent,
                                          .feed_forward_weights = kDenseFfnWeights};
constexpr LayerKind kSparseLatentExperts = {.mixer = Mixer::kLatentAttention,
                                            .feed_forward = FeedForward::kExperts,
                                            .mixer_weights = kSparseLatent,
                                            .feed_forward_weights = kSigmoidExpertWeights,
                                            .scores = RouterScores::kSigmoid};

}  // namespace

// config.json does not give the epsilon of the inner norms, as for DeepSeek V3.
constexpr Architecture kDeepseekV32 = {.name = "DeepseekV32ForCausalLM",
                                       .model_types = {"deepseek_v32"},
                                       .shared = kSharedWeights,
                                       .dense = kSparseLatentDense,
                                       .sparse = kSparseLatentExperts,
                                       .latent_norm_epsilon = 1e-6f,
                                       .has_indexer = true};
constexpr Architecture kGlmMoeDsa = {.name = "GlmMoeDsaForCausalLM",
                                     .model_types = {"glm_moe_dsa"},
                                     .shared = kSharedWeights,
                                     .dense = kSparseLatentDense,
                                     .sparse = kSparseLatentExperts,
                                     .latent_norm_epsilon = 1e-6f,
                                     .has_indexer = true,
                                     .rotates_index_pairs = true};

}  // namespace lockstep
