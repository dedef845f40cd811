// Models in which most layers keep a state of one size, by the gated delta rule, and the others
// have attention with a gate: Qwen3-Next and Qwen 3.5.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr WeightSpec kDeltaMixer[] = {
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

constexpr WeightSpec kScoredExperts[] = {
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

constexpr WeightSpec kDraftWeights[] = {
    {Role::kDraftTokenNorm, "mtp.pre_fc_norm_embedding.weight", Split::kWhole},
    {Role::kDraftHiddenNorm, "mtp.pre_fc_norm_hidden.weight", Split::kWhole},
    {Role::kDraftInput, "mtp.fc.weight", Split::kWhole},
    {Role::kDraftNorm, "mtp.norm.weight", Split::kWhole},
};
constexpr DraftKind kGatedDraft = {.prefix = "mtp.layers.0.", .weights = kDraftWeights};

constexpr LayerKind kGatedDense = {.mixer_weights = kGroupedAttention,
                                   .feed_forward_weights = kDenseFfnWeights};
constexpr LayerKind kGatedSparse = {.feed_forward = FeedForward::kExperts,
                                    .mixer_weights = kGroupedAttention,
                                    .feed_forward_weights = kScoredExperts};

}  // namespace

constexpr Architecture kQwen3Next = {.name = "Qwen3NextForCausalLM",
                                     .model_types = {"qwen3_next"},
                                     .shared = kSharedWeights,
                                     .dense = kGatedDense,
                                     .sparse = kGatedSparse,
                                     .head_norms = Has::kYes,
                                     .recurrent = {.weights = kDeltaMixer},
                                     .gates_attention = true,
                                     .has_grouped_delta = true,
                                     .lowers_norms = true,
                                     .normalises_chosen = true,
                                     .draft = kGatedDraft};
constexpr Architecture kQwen35 = {.name = "Qwen3_5ForConditionalGeneration",
                                  .model_types = {"qwen3_5_text", "qwen3_5"},
                                  .shared = kSharedWeights,
                                  .dense = kGatedDense,
                                  .sparse = kGatedDense,
                                  .head_norms = Has::kYes,
                                  .recurrent = {.weights = kDeltaMixer},
                                  .gates_attention = true,
                                  .lowers_norms = true,
                                  .draft = kGatedDraft};
constexpr Architecture kQwen35Moe = {.name = "Qwen3_5MoeForConditionalGeneration",
                                     .model_types = {"qwen3_5_moe_text", "qwen3_5_moe"},
                                     .shared = kSharedWeights,
                                     .dense = kGatedDense,
                                     .sparse = kGatedSparse,
                                     .head_norms = Has::kYes,
                                     .recurrent = {.weights = kDeltaMixer},
                                     .gates_attention = true,
                                     .lowers_norms = true,
                                     .normalises_chosen = true,
                                     .draft = kGatedDraft};

}  // namespace lockstep
