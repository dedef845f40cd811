// An architecture is data: the kinds of layer it has, how each weight is named in the checkpoint,
// and along which axis it is cut. Loader, planner (bytes of each rank), forward pass and tests read
// this one table.
#pragma once

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
};
inline constexpr int kRoleCount = 17;

enum class Split {
  kWhole,        // every rank has it: norms
  kVocabulary,   // rows by token id
  kHeads,        // rows by query head
  kKvHeads,      // rows by key/value head; replicated where there are more ranks than heads
  kHeadColumns,  // columns by query head; the product is summed over ranks
  kFfn,          // rows by feed-forward column
  kFfnColumns,   // columns by feed-forward column; the product is summed over ranks
};

enum class Mixer { kGroupedAttention };
enum class FeedForward { kDense };
// What a layer keeps of a sequence: pages by position, a ring of the last positions, or one
// fixed-size state with checkpoints (recurrent layers). Only pages are in use so far.
enum class StateKind { kPaged, kRing, kRecurrent };

struct WeightSpec {
  Role role;
  std::string_view name;  // in the checkpoint; {L} is the layer
  Split split;
};

struct LayerKind {
  std::string_view name;  // as in config.json "layer_types"; empty if the model has one kind
  Mixer mixer;
  FeedForward feed_forward;
  StateKind state;
  bool query_key_norm = false;  // an RMS norm over each head of queries and keys
  bool qkv_bias = false;
  std::span<const WeightSpec> weights;
  std::span<const WeightSpec> more_weights = {};  // what this kind has beside those of its family
};

struct Architecture {
  std::string_view name;               // config.json "architectures"
  std::span<const WeightSpec> shared;  // embedding, final norm, LM head
  std::span<const LayerKind> layers;
};

// Null if there is none of that name.
const Architecture* find_architecture(std::string_view name);
// All names, for error messages.
std::span<const Architecture* const> known_architectures();

}  // namespace lockstep
