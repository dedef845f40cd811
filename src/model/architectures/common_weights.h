// Weights that several architectures publish under the same names.
#pragma once

#include "model/architectures/architecture.h"

namespace lockstep {

inline constexpr WeightSpec kSharedWeights[] = {
    {Role::kEmbedding, "model.embed_tokens.weight", Split::kVocabulary},
    {Role::kFinalNorm, "model.norm.weight", Split::kWhole},
    {Role::kLogits, "lm_head.weight", Split::kVocabulary, When::kUntied},
};

inline constexpr WeightSpec kGroupedAttention[] = {
    {Role::kAttentionNorm, "model.layers.{L}.input_layernorm.weight", Split::kWhole},
    {Role::kQuery, "model.layers.{L}.self_attn.q_proj.weight", Split::kHeads},
    {Role::kKey, "model.layers.{L}.self_attn.k_proj.weight", Split::kKvHeads},
    {Role::kValue, "model.layers.{L}.self_attn.v_proj.weight", Split::kKvHeads},
    {Role::kQueryBias, "model.layers.{L}.self_attn.q_proj.bias", Split::kHeads, When::kQkvBias},
    {Role::kKeyBias, "model.layers.{L}.self_attn.k_proj.bias", Split::kKvHeads, When::kQkvBias},
    {Role::kValueBias, "model.layers.{L}.self_attn.v_proj.bias", Split::kKvHeads, When::kQkvBias},
    {Role::kQueryNorm, "model.layers.{L}.self_attn.q_norm.weight", Split::kWhole, When::kHeadNorms},
    {Role::kKeyNorm, "model.layers.{L}.self_attn.k_norm.weight", Split::kWhole, When::kHeadNorms},
    {Role::kAttentionOut, "model.layers.{L}.self_attn.o_proj.weight", Split::kHeadColumns},
};

// The projections to the latents are cut if that is worth an exchange (model/load/latent_cut.h);
// those from the latents to the heads are cut by head. The index is whole on every rank, so that
// all choose alike without an exchange.
inline constexpr WeightSpec kLatentAttention[] = {
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
    {Role::kIndexPoolGate, "model.layers.{L}.self_attn.indexer.index_kpool_compress_gate.weight",
     Split::kWhole, When::kIndexPools},
    {Role::kIndexPoolBias, "model.layers.{L}.self_attn.indexer.index_kpool_compress_ape",
     Split::kWhole, When::kIndexPools},
};

// The delta rule with a decay for each channel, whose queries, keys and values have a matrix and a
// convolution each.
inline constexpr WeightSpec kChannelDelta[] = {
    {Role::kAttentionNorm, "model.layers.{L}.input_layernorm.weight", Split::kWhole},
    {Role::kDeltaQuery, "model.layers.{L}.self_attn.q_proj.weight", Split::kDeltaHeads},
    {Role::kDeltaKey, "model.layers.{L}.self_attn.k_proj.weight", Split::kDeltaHeads},
    {Role::kDeltaValue, "model.layers.{L}.self_attn.v_proj.weight", Split::kDeltaHeads},
    {Role::kDeltaQueryConvolution, "model.layers.{L}.self_attn.q_conv1d.weight",
     Split::kDeltaHeads},
    {Role::kDeltaKeyConvolution, "model.layers.{L}.self_attn.k_conv1d.weight", Split::kDeltaHeads},
    {Role::kDeltaValueConvolution, "model.layers.{L}.self_attn.v_conv1d.weight",
     Split::kDeltaHeads},
    {Role::kDeltaGateDown, "model.layers.{L}.self_attn.g_a_proj.weight", Split::kWhole},
    {Role::kDeltaGate, "model.layers.{L}.self_attn.g_b_proj.weight", Split::kDeltaHeads},
    {Role::kDeltaDecayDown, "model.layers.{L}.self_attn.f_a_proj.weight", Split::kWhole},
    {Role::kDeltaDecay, "model.layers.{L}.self_attn.f_b_proj.weight", Split::kDeltaHeads},
    {Role::kDeltaRate, "model.layers.{L}.self_attn.b_proj.weight", Split::kDeltaHeads},
    {Role::kDeltaDecayRate, "model.layers.{L}.self_attn.A_log", Split::kDeltaHeads},
    {Role::kDeltaDecayBias, "model.layers.{L}.self_attn.dt_bias", Split::kDeltaHeads},
    {Role::kDeltaNorm, "model.layers.{L}.self_attn.o_norm.weight", Split::kWhole},
    {Role::kDeltaOut, "model.layers.{L}.self_attn.o_proj.weight", Split::kDeltaColumns},
};

// The gated delta rule as Qwen's models have it, after a norm.
inline constexpr WeightSpec kDeltaMixer[] = {
    {Role::kAttentionNorm, "model.layers.{L}.input_layernorm.weight", Split::kWhole},
    {Role::kDeltaGroupedInput, "model.layers.{L}.linear_attn.in_proj_qkvz.weight",
     Split::kDeltaHeads, When::kGroupedInput},
    {Role::kDeltaGroupedRates, "model.layers.{L}.linear_attn.in_proj_ba.weight", Split::kDeltaHeads,
     When::kGroupedInput},
    {Role::kDeltaInput, "model.layers.{L}.linear_attn.in_proj_qkv.weight", Split::kDeltaBlocks,
     When::kSeparateInput},
    {Role::kDeltaGate, "model.layers.{L}.linear_attn.in_proj_z.weight", Split::kDeltaHeads,
     When::kSeparateInput},
    {Role::kDeltaRate, "model.layers.{L}.linear_attn.in_proj_b.weight", Split::kDeltaHeads,
     When::kSeparateInput},
    {Role::kDeltaDecay, "model.layers.{L}.linear_attn.in_proj_a.weight", Split::kDeltaHeads,
     When::kSeparateInput},
    {Role::kDeltaConvolution, "model.layers.{L}.linear_attn.conv1d.weight", Split::kDeltaBlocks},
    {Role::kDeltaDecayRate, "model.layers.{L}.linear_attn.A_log", Split::kDeltaHeads},
    {Role::kDeltaDecayBias, "model.layers.{L}.linear_attn.dt_bias", Split::kDeltaHeads},
    {Role::kDeltaNorm, "model.layers.{L}.linear_attn.norm.weight", Split::kWhole},
    {Role::kDeltaOut, "model.layers.{L}.linear_attn.out_proj.weight", Split::kDeltaColumns},
};

// Experts chosen by softmax, and a shared expert with a gate, after a norm.
inline constexpr WeightSpec kScoredExperts[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.post_attention_layernorm.weight", Split::kWhole},
    {Role::kRouter, "model.layers.{L}.mlp.gate.weight", Split::kWhole},
    {Role::kExpertGate, "model.layers.{L}.mlp.experts.{E}.gate_proj.weight", Split::kExpertFfn},
    {Role::kExpertUp, "model.layers.{L}.mlp.experts.{E}.up_proj.weight", Split::kExpertFfn},
    {Role::kExpertDown, "model.layers.{L}.mlp.experts.{E}.down_proj.weight",
     Split::kExpertFfnColumns},
    {Role::kSharedScore, "model.layers.{L}.mlp.shared_expert_gate.weight", Split::kWhole,
     When::kSharedExperts},
    {Role::kSharedGate, "model.layers.{L}.mlp.shared_expert.gate_proj.weight", Split::kSharedFfn,
     When::kSharedExperts},
    {Role::kSharedUp, "model.layers.{L}.mlp.shared_expert.up_proj.weight", Split::kSharedFfn,
     When::kSharedExperts},
    {Role::kSharedDown, "model.layers.{L}.mlp.shared_expert.down_proj.weight",
     Split::kSharedFfnColumns, When::kSharedExperts},
};

// The gates of several residual streams.
inline constexpr WeightSpec kStreamWeights[] = {
    {Role::kAttentionStreams, "model.layers.{L}.hc_attn_fn.weight", Split::kWhole, When::kStreams},
    {Role::kAttentionStreamsScale, "model.layers.{L}.hc_attn_scale", Split::kWhole, When::kStreams},
    {Role::kAttentionStreamsBias, "model.layers.{L}.hc_attn_base", Split::kWhole, When::kStreams},
    {Role::kFeedForwardStreams, "model.layers.{L}.hc_ffn_fn.weight", Split::kWhole, When::kStreams},
    {Role::kFeedForwardStreamsScale, "model.layers.{L}.hc_ffn_scale", Split::kWhole,
     When::kStreams},
    {Role::kFeedForwardStreamsBias, "model.layers.{L}.hc_ffn_base", Split::kWhole, When::kStreams},
};

// The draft layer of models that store it as one more layer.
inline constexpr WeightSpec kNextDraftWeights[] = {
    {Role::kDraftTokenNorm, "model.layers.{L}.enorm.weight", Split::kWhole},
    {Role::kDraftHiddenNorm, "model.layers.{L}.hnorm.weight", Split::kWhole},
    {Role::kDraftInput, "model.layers.{L}.eh_proj.weight", Split::kWhole},
    {Role::kDraftNorm, "model.layers.{L}.shared_head.norm.weight", Split::kWhole},
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
