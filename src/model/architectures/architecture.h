// An architecture is data: its kinds of layers, the name of each weight in the checkpoint, and the
// axis along which it is cut. Loader, planner (bytes per rank), forward pass and tests read this
// one table. Differences between checkpoints of one architecture are conditions (When).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "device/router_form.h"

namespace lockstep {

// The weights that the forward pass uses.
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
  kSinks,  // a logit per head that takes part in its softmax without a value
  kAttentionOutBias,
  kExpertGateBias,
  kExpertUpBias,
  kExpertDownBias,
  kAttentionPostNorm,  // of what attention and the feed-forward part add to the hidden state
  kFeedForwardPostNorm,
  kLayerScale,  // one number, by which the hidden state is multiplied after the layer
  // The delta rule: the hidden state to queries, keys and values, to the gate of the output, and to
  // the rate and the decay of each value head; or (grouped) to the first four and to the last two.
  kDeltaInput,
  kDeltaGate,
  kDeltaRate,
  kDeltaDecay,
  kDeltaGroupedInput,
  kDeltaGroupedRates,
  kDeltaConvolution,  // (channels of queries, keys and values; taps)
  kDeltaDecayRate,    // its logarithm
  kDeltaDecayBias,
  kDeltaNorm,  // of each head's output
  kDeltaOut,
  kSharedScore,  // hidden state to a number; its sigmoid scales the shared expert
  // The same with a matrix and a convolution of each, and where the gate and the decays of channels
  // come from the hidden state by two matrices.
  kDeltaQuery,
  kDeltaKey,
  kDeltaValue,
  kDeltaQueryConvolution,
  kDeltaKeyConvolution,
  kDeltaValueConvolution,
  kDeltaGateDown,
  kDeltaDecayDown,
  kRouterNorm,  // a norm of the router's own input, and one of the experts'
  kExpertsNorm,
  kExpertScales,   // a number for each expert, by which its weight for a token is multiplied
  kDensePostNorm,  // of the dense part and of the experts, which are summed apart
  kExpertsPostNorm,
  kLayerEmbedding,   // a token's own input of each layer: its stored part,
  kLayerProjection,  // its part from the embedding, and the norm of that
  kLayerProjectionNorm,
  kLayerInputGate,  // hidden state to the gate of a layer's own input, from there back, its norm
  kLayerInputOut,
  kLayerInputNorm,
  kIndexQuery,  // sparse attention: the query's latent to the heads of the index
  kIndexKey,    // hidden state to the one key of the index, its layer norm
  kIndexKeyNorm,
  kIndexKeyNormBias,
  kIndexWeights,   // hidden state to the weight of each head of the index
  kIndexPoolGate,  // hidden state to the gates by which keys of the index enter that of their pool
  kIndexPoolBias,  // (places of a pool, columns of a key): is added to the gates
  // The draft layer: norms of the next token's embedding and of the hidden state, both to the
  // layer's input, and the norm after the layer. If it guesses blocks, the input is made of hidden
  // states of several layers, and has the norm.
  kDraftTokenNorm,
  kDraftHiddenNorm,
  kDraftInput,
  kDraftNorm,
  // Several residual streams (StreamGates in device/operations.h): the normed streams to the gates
  // of a part of the layer, their scale and their bias.
  kAttentionStreams,
  kAttentionStreamsScale,
  kAttentionStreamsBias,
  kFeedForwardStreams,
  kFeedForwardStreamsScale,
  kFeedForwardStreamsBias,
  kLastStreams,  // the same from the streams after the last layer to the weights of their sum
  kLastStreamsScale,
  kLastStreamsBias,
  kRouterTable,  // the experts of each token id, instead of a router's choice
  // Compressed attention: hidden state to the one key of a position, which is also the value, and
  // its norm; the heads of a group to its latent, before kAttentionOut.
  kSharedKey,
  kSharedKeyNorm,
  kGroupOut,
  // Entries (Compress in device/operations.h): hidden state to values and to gates, what is added
  // to the gates at each place of a pool, and the entry's norm; the same for the index's keys.
  kEntryValues,
  kEntryGates,
  kEntryBias,
  kEntryNorm,
  kIndexEntryValues,
  kIndexEntryGates,
  kIndexEntryBias,
  kIndexEntryNorm,
  kDraftTokenInput,  // the two parts of kDraftInput, where each stream has a sum of its own
  kDraftHiddenInput,
  kDraftPrevious,  // blocks: the previous token's row, and from there to what its logits get
  kDraftFollowing,
  // Several residual streams that are mixed element by element: their norm (streams, hidden); from
  // there to a latent, and back to the gates of the mixture; and to the gate of each stream for the
  // result. The same for a part of the layer and after the last one.
  kAttentionStreamsNorm,
  kAttentionStreamsDown,
  kAttentionStreamsUp,
  kAttentionStreamsInject,
  kFeedForwardStreamsNorm,
  kFeedForwardStreamsDown,
  kFeedForwardStreamsUp,
  kFeedForwardStreamsInject,
  kLastStreamsNorm,
  kLastStreamsDown,
  kLastStreamsUp,
  kIndexQueryKey,   // kIndexQuery and then kIndexKey in one matrix
  kIndexQueryNorm,  // of each head
  // Tables of n-grams: rows, and from a token's rows to a key for each stream and to one value,
  // the norms of keys and streams, and those of the convolution's inputs and its weights.
  kNgramRows,
  kNgramMultipliers,  // integers: NgramConstants in model/ngrams/ngram_config.h
  kNgramHeadRows,
  kNgramOffsets,
  kNgramKey,
  kNgramValue,
  kNgramKeyNorm,
  kNgramQueryNorm,
  kNgramConvolutionNorm,
  kNgramConvolution,
};
inline constexpr int kRoleCount = 128;
constexpr bool is_of_mixed_streams(Role role) {
  return role >= Role::kAttentionStreamsNorm && role <= Role::kLastStreamsUp;
}
constexpr bool is_of_ngrams(Role role) {
  return role >= Role::kNgramRows && role <= Role::kNgramConvolution;
}

enum class Split {
  kWhole,        // on every rank: norms, the router (cutting it costs an exchange)
  kVocabulary,   // rows by token id
  kTableRows,    // rows of a table of any length, as those by token id
  kHeads,        // rows by query head
  kKvHeads,      // rows by key/value head; replicated if there are more ranks than heads
  kHeadColumns,  // columns by query head; the product is summed over ranks
  kFfn,          // rows by feed-forward column
  kFfnColumns,   // columns by feed-forward column; the product is summed over ranks
  kExpertFfn,    // the same for the columns of each expert
  kExpertFfnColumns,
  kSharedFfn,  // and for those of the shared experts or the dense part, which form one wide expert
  kSharedFfnColumns,
  // Rows of the projections to the latents; whole on every rank if !Cut::cuts_latents().
  kQueryLatent,
  kKvLatent,
  kDeltaHeads,    // rows by key head of the delta rule, with its value heads
  kDeltaBlocks,   // rows of queries, then of keys, then of values, each by key head
  kDeltaColumns,  // columns by key head; the product is summed over ranks
};

// Which checkpoints have a weight.
enum class When {
  kAlways,
  kUntied,
  kQkvBias,
  kHeadNorms,
  kSharedExperts,
  kQueryLatent,  // queries have a latent of their own
  kNoQueryLatent,
  kOwnValues,      // values are not the keys
  kGroupedInput,   // the inputs of the delta rule are one matrix, by key head
  kSeparateInput,  // or not
  kOwnKeys,        // keys and values are not an earlier layer's
  kLayerInputs,
  kIndexer,        // the layer chooses positions itself
  kIndexPools,     // and its index has a key for several positions
  kStreams,        // the layer has several residual streams
  kEntries,        // compressed attention has entries besides its window
  kGivenExperts,   // a token's id decides its experts
  kChosenExperts,  // or not
  kNgrams,         // the layer adds rows of n-grams
};

// Biases, norms and sinks are not kinds of their own: a layer has those that its weights list.
enum class Mixer {
  kAttention,        // key/value heads, each for a group of query heads
  kLatentAttention,  // MLA: DeepSeek-V2, section 2.1; the latent is cached, in the absorbed form
  kDeltaRule,  // gated delta net: https://arxiv.org/abs/2412.06464; a state of one size is kept
  kCompressedAttention,  // over a window, and entries that stand for several positions each
};
enum class FeedForward { kDense, kExperts };
// How gate and up products are joined; see Activation in device/operations.h.
enum class Gating { kSilu, kClampedSwiglu, kGelu, kClippedSilu };

struct WeightSpec {
  Role role;
  std::string_view name;  // in the checkpoint; {L} is the layer, {E} the expert, {P} the part
  Split split;
  When when = When::kAlways;
};

struct LayerKind {
  Mixer mixer = Mixer::kAttention;
  FeedForward feed_forward = FeedForward::kDense;
  std::span<const WeightSpec> mixer_weights;
  std::span<const WeightSpec> feed_forward_weights;
  // A router's bias is added before a softmax, but after the other forms and then only for the
  // choice (DeepSeek V3, section 2.1.2).
  RouterForm scores = RouterForm::kSoftmax;
  Gating gating = Gating::kSilu;
};

// The layers that keep a state instead of keys and values.
struct RecurrentKind {
  Mixer mixer = Mixer::kDeltaRule;
  std::span<const WeightSpec> weights;
};

// The draft layer: one more layer after the last one, with attention. Its input is the model's
// hidden state of a token and the token after that, its output predicts the one after both
// (DeepSeek V3, https://arxiv.org/abs/2412.19437, section 2.2).
struct DraftKind {
  // Instead of "model.layers.{L}." in its weights' names; {D} is the number of a draft layer.
  std::string_view prefix;
  std::span<const WeightSpec> weights;  // besides those of a layer; empty: there is none
  // Instead of these, in the first and in the last of several layers that guess a block of tokens
  // at once (ModelConfig::draft_block); empty: the architecture has no such form.
  std::span<const WeightSpec> first_of_block{};
  std::span<const WeightSpec> last_of_block{};
};

enum class Has { kNo, kYes, kAsConfigured };

struct Architecture {
  std::string_view name;  // config.json "architectures"
  // And its "model_type", which identifies the text model inside a multimodal one.
  std::array<std::string_view, 2> model_types{};
  std::span<const WeightSpec> shared;  // embedding, final norm, LM head
  LayerKind dense;
  LayerKind sparse;  // with experts; same as `dense` if the architecture has none
  std::span<const WeightSpec> every_layer;  // besides those of its kind
  Has qkv_bias = Has::kNo;                  // configured by "attention_bias"
  Has head_norms = Has::kNo;         // an RMS norm over each head of q and k; by "use_qk_norm"
  bool joins_head_norms = false;     // one over all heads of q, and one over those of k
  bool has_own_full_layers = false;  // those without a window differ: ModelConfig::full
  bool norms_values = false;         // an RMS norm without weights over each head of v
  bool scales_scores = true;         // by the root of the head's size
  bool scales_embedding = false;     // by the root of the hidden size
  std::string_view experts_flag;     // the key without which no layer has experts; empty: none
  std::string_view expert_width = "moe_intermediate_size";  // its key
  float latent_norm_epsilon = 0;   // of the norms inside latent attention; 0: "rms_norm_eps"
  RecurrentKind recurrent;         // without weights: there are none
  bool gates_attention = false;    // each head of the query projection is a query and a gate
  bool has_grouped_delta = false;  // the inputs of the delta rule are grouped by key head
  // Norms of the hidden state and of heads are stored as their weight less 1, except by MLX.
  bool lowers_norms = false;
  bool decays_channels = false;      // the delta rule: each row of a state has a decay of its own
  bool normalises_chosen = false;    // the weights of the chosen experts, if the file does not say
  bool has_indexer = false;          // attention covers chosen positions: ModelConfig::indexer
  bool rotates_index_pairs = false;  // the default of "indexer_rope_interleave"
  bool has_streams = false;          // several residual streams: ModelConfig::streams
  bool weighs_last_streams = false;  // their last sum has weights of its own; else it is the mean
  bool drafts_streams = false;       // the draft layer continues each stream
  // The streams are mixed element by element, which takes the place of all norms of hidden states.
  bool mixes_streams = false;
  bool indexes_blocks = false;  // grouped attention covers blocks that an index chooses
  bool has_ngrams = false;      // tables of n-grams: ModelConfig::ngrams
  DraftKind draft;
};

// Null if there is none of that name.
const Architecture* find_architecture(std::string_view name);
const Architecture* find_model_type(std::string_view type);
// All names, for error messages.
std::span<const Architecture* const> known_architectures();

}  // namespace lockstep
