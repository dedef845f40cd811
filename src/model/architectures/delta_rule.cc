// Models in which most layers keep a state of one size, by the gated delta rule, and the others
// have attention with a gate: Qwen3-Next and Qwen 3.5.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

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
