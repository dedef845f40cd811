// An architecture is data: the kinds of layer it has, how each weight is named in the checkpoint,
// and along which axis it is cut. Loader, planner (bytes of each rank), forward pass and tests read
// this one table. What varies between checkpoints of one architecture is a condition (When).
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace lockstep {

// What the forward pass asks for.
enum class Role {
  kEmbedding,
  kFinalNorm,
  kLogits,
  kAttentionNorm,
  kQuery,
  kKey,
  kValue,
  kQueryBias,
  kKeyBias,
  kValueBias,
  kQueryNorm,
  kKeyNorm,
  kAttentionOut,
  kFeedForwardNorm,
  kGate,
  kUp,
  kDown,
  kRouter,
  kRouterBias,
  kExpertGate,
  kExpertUp,
  kExpertDown,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kQueryDown,  // latent attention: hidden state to the query's latent, its norm
  kQueryDownNorm,
  kKvDown,  // hidden state to the latent of keys and values, and the shared rotated key
  kKvDownNorm,
  kKvUp,   // latent to each head's key and value
  kSinks,  // a logit of each head that takes part in its softmax without a value
  kAttentionOutBias,
  kExpertGateBias,
  kExpertUpBias,
  kExpertDownBias,
};
inline constexpr int kRoleCount = 35;

enum class Split {
  kWhole,        // every rank has it: norms, the router (cutting it costs an exchange)
  kVocabulary,   // rows by token id
  kHeads,        // rows by query head
  kKvHeads,      // rows by key/value head; replicated where there are more ranks than heads
  kHeadColumns,  // columns by query head; the product is summed over ranks
  kFfn,          // rows by feed-forward column
  kFfnColumns,   // columns by feed-forward column; the product is summed over ranks
  kExpertFfn,    // the same for the columns of each expert
  kExpertFfnColumns,
  kSharedFfn,  // and for those of the shared experts, which are one wide expert
  kSharedFfnColumns,
  // Rows of the projections to the latents; whole on every rank where !Cut::cuts_latents().
  kQueryLatent,
  kKvLatent,
};

// Which checkpoints have a weight.
enum class When {
  kAlways,
  kUntied,
  kQkvBias,
  kHeadNorms,
  kSharedExperts,
  kQueryLatent,  // queries go through a latent of their own
  kNoQueryLatent,
};

enum class Mixer {
  kGroupedAttention,
  kSinkAttention,    // grouped, with a sink for each head and a bias on the output (gpt-oss)
  kLatentAttention,  // MLA: DeepSeek-V2, section 2.1; the latent is cached, in the absorbed form
};
enum class FeedForward {
  kDense,
  kSoftmaxExperts,  // the top experts by softmax
  kSigmoidExperts,  // by sigmoid and a bias, from the best groups; DeepSeek V3, section 2.1.2
  // By the softmax of biased scores; the experts have biases and a clamped activation (gpt-oss).
  kBiasedExperts,
};
// What a layer keeps of a sequence: pages by position, a ring of the last positions, or one
// fixed-size state with checkpoints (recurrent layers). Only pages are in use so far.
enum class StateKind { kPaged, kRing, kRecurrent };

struct WeightSpec {
  Role role;
  std::string_view name;  // in the checkpoint; {L} is the layer, {E} the expert
  Split split;
  When when = When::kAlways;
};

struct LayerKind {
  Mixer mixer;
  FeedForward feed_forward;
  StateKind state;
  std::span<const WeightSpec> mixer_weights;
  std::span<const WeightSpec> feed_forward_weights;
};

enum class Has { kNo, kYes, kAsConfigured };

struct Architecture {
  std::string_view name;  // config.json "architectures"
  // And its "model_type", by which the text model inside a multimodal one is found.
  std::array<std::string_view, 2> model_types{};
  std::span<const WeightSpec> shared;  // embedding, final norm, LM head
  LayerKind dense;
  LayerKind sparse;           // with experts; as `dense` where the architecture has none
  Has qkv_bias = Has::kNo;    // configured by "attention_bias"
  Has head_norms = Has::kNo;  // an RMS norm over each head of q and k; by "use_qk_norm"
};

// Null if there is none of that name.
const Architecture* find_architecture(std::string_view name);
const Architecture* find_model_type(std::string_view type);
// All names, for error messages.
std::span<const Architecture* const> known_architectures();

}  // namespace lockstep
