// Models with grouped-query attention. Most publish the same tensor names; they differ in biases,
// norms and experts.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr WeightSpec kSoftmaxExperts[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.post_attention_layernorm.weight", Split::kWhole},
    {Role::kRouter, "model.layers.{L}.mlp.gate.weight", Split::kWhole},
    {Role::kExpertGate, "model.layers.{L}.mlp.experts.{E}.gate_proj.weight", Split::kExpertFfn},
    {Role::kExpertUp, "model.layers.{L}.mlp.experts.{E}.up_proj.weight", Split::kExpertFfn},
    {Role::kExpertDown, "model.layers.{L}.mlp.experts.{E}.down_proj.weight",
     Split::kExpertFfnColumns},
};

constexpr LayerKind kGroupedDense = {.mixer_weights = kGroupedAttention,
                                     .feed_forward_weights = kDenseFfnWeights};
constexpr LayerKind kSoftmaxSparse = {.feed_forward = FeedForward::kExperts,
                                      .mixer_weights = kGroupedAttention,
                                      .feed_forward_weights = kSoftmaxExperts};
constexpr LayerKind kSigmoidSparse = {.feed_forward = FeedForward::kExperts,
                                      .mixer_weights = kGroupedAttention,
                                      .feed_forward_weights = kSigmoidExpertWeights,
                                      .scores = RouterForm::kSigmoid};

constexpr Architecture dense_model(std::string_view name, std::string_view type, Has qkv_bias,
                                   Has head_norms) {
  return {.name = name,
          .model_types = {type},
          .shared = kSharedWeights,
          .dense = kGroupedDense,
          .sparse = kGroupedDense,
          .qkv_bias = qkv_bias,
          .head_norms = head_norms};
}

}  // namespace

constexpr Architecture kLlama = dense_model("LlamaForCausalLM", "llama", Has::kNo, Has::kNo);
constexpr Architecture kMistral = dense_model("MistralForCausalLM", "mistral", Has::kNo, Has::kNo);
constexpr Architecture kMinistral3 =
    dense_model("Ministral3ForCausalLM", "ministral3", Has::kNo, Has::kNo);
constexpr Architecture kQwen2 = dense_model("Qwen2ForCausalLM", "qwen2", Has::kYes, Has::kNo);
constexpr Architecture kQwen3 = dense_model("Qwen3ForCausalLM", "qwen3", Has::kNo, Has::kYes);
constexpr Architecture kQwen3Moe = {.name = "Qwen3MoeForCausalLM",
                                    .model_types = {"qwen3_moe"},
                                    .shared = kSharedWeights,
                                    .dense = kGroupedDense,
                                    .sparse = kSoftmaxSparse,
                                    .head_norms = Has::kYes};
constexpr Architecture kGlm4Moe = {.name = "Glm4MoeForCausalLM",
                                   .model_types = {"glm4_moe"},
                                   .shared = kSharedWeights,
                                   .dense = kGroupedDense,
                                   .sparse = kSigmoidSparse,
                                   .qkv_bias = Has::kAsConfigured,
                                   .head_norms = Has::kAsConfigured,
                                   .draft = {.weights = kNextDraftWeights}};

}  // namespace lockstep
