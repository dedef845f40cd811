// Models with latent attention, over all positions or those that an index chooses.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr LayerKind kLatentDense = {.mixer = Mixer::kLatentAttention,
                                    .mixer_weights = kLatentAttention,
                                    .feed_forward_weights = kDenseFfnWeights};
constexpr LayerKind kLatentSparse = {.mixer = Mixer::kLatentAttention,
                                     .feed_forward = FeedForward::kExperts,
                                     .mixer_weights = kLatentAttention,
                                     .feed_forward_weights = kSigmoidExpertWeights,
                                     .scores = RouterForm::kSigmoid};

}  // namespace

// config.json does not give the epsilon of the inner norms (Hugging Face transformers,
// DeepseekV3RMSNorm).
constexpr Architecture kDeepseekV3 = {.name = "DeepseekV3ForCausalLM",
                                      .model_types = {"deepseek_v3", "kimi_k2"},
                                      .shared = kSharedWeights,
                                      .dense = kLatentDense,
                                      .sparse = kLatentSparse,
                                      .latent_norm_epsilon = 1e-6f,
                                      .draft = {.weights = kNextDraftWeights}};
constexpr Architecture kGlm4MoeLite = {.name = "Glm4MoeLiteForCausalLM",
                                       .model_types = {"glm4_moe_lite"},
                                       .shared = kSharedWeights,
                                       .dense = kLatentDense,
                                       .sparse = kLatentSparse,
                                       .draft = {.weights = kNextDraftWeights}};

constexpr Architecture kDeepseekV32 = {.name = "DeepseekV32ForCausalLM",
                                       .model_types = {"deepseek_v32"},
                                       .shared = kSharedWeights,
                                       .dense = kLatentDense,
                                       .sparse = kLatentSparse,
                                       .latent_norm_epsilon = 1e-6f,
                                       .has_indexer = true,
                                       .draft = {.weights = kNextDraftWeights}};
constexpr Architecture kGlmMoeDsa = {.name = "GlmMoeDsaForCausalLM",
                                     .model_types = {"glm_moe_dsa"},
                                     .shared = kSharedWeights,
                                     .dense = kLatentDense,
                                     .sparse = kLatentSparse,
                                     .latent_norm_epsilon = 1e-6f,
                                     .has_indexer = true,
                                     .rotates_index_pairs = true,
                                     .draft = {.weights = kNextDraftWeights}};

}  // namespace lockstep
