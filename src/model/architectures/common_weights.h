// Weights that several architectures publish under the same names.
#pragma once

#include "model/architectures/architecture.h"

namespace lockstep {

inline constexpr WeightSpec kSharedWeights[] = {
    {Role::kEmbedding, "model.embed_tokens.weight", Split::kVocabulary},
    {Role::kFinalNorm, "model.norm.weight", Split::kWhole},
    {Role::kLogits, "lm_head.weight", Split::kVocabulary, When::kUntied},
};

inline constexpr WeightSpec kDenseFfnWeights[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.post_attention_layernorm.weight", Split::kWhole},
    {Role::kGate, "model.layers.{L}.mlp.gate_proj.weight", Split::kFfn},
    {Role::kUp, "model.layers.{L}.mlp.up_proj.weight", Split::kFfn},
    {Role::kDown, "model.layers.{L}.mlp.down_proj.weight", Split::kFfnColumns},
};

// Experts chosen by sigmoid, and a dense shared expert.
inline constexpr WeightSpec kSigmoidExpertWeights[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.post_attention_layernorm.weight", Split::kWhole},
    {Role::kRouter, "model.layers.{L}.mlp.gate.weight", Split::kWhole},
    {Role::kRouterBias, "model.layers.{L}.mlp.gate.e_score_correction_bias", Split::kWhole},
    {Role::kExpertGate, "model.layers.{L}.mlp.experts.{E}.gate_proj.weight", Split::kExpertFfn},
    {Role::kExpertUp, "model.layers.{L}.mlp.experts.{E}.up_proj.weight", Split::kExpertFfn},
    {Role::kExpertDown, "model.layers.{L}.mlp.experts.{E}.down_proj.weight",
     Split::kExpertFfnColumns},
    {Role::kSharedGate, "model.layers.{L}.mlp.shared_experts.gate_proj.weight", Split::kSharedFfn,
     When::kSharedExperts},
    {Role::kSharedUp, "model.layers.{L}.mlp.shared_experts.up_proj.weight", Split::kSharedFfn,
     When::kSharedExperts},
    {Role::kSharedDown, "model.layers.{L}.mlp.shared_experts.down_proj.weight",
     Split::kSharedFfnColumns, When::kSharedExperts},
};

}  // namespace lockstep
