// ModelConfig: the sizes and constants of one model, from config.json. Everything is checked here,
// so that later code never sees an impossible size. Immutable.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/architectures/architecture.h"
#include "model/config/layer_traits.h"
#include "model/ngrams/ngram_config.h"

namespace lockstep {

// More chosen experts per token are refused.
inline constexpr int kChosenExpertsMax = 32;
// More experts over all layers are refused (Kimi K2 has 23 thousand): each has its matrices.
inline constexpr int kExpertsMax = 1 << 18;
// More heads of latent attention are refused: each has its matrices.
inline constexpr int kLatentHeadsMax = 256;
// More heads of the delta rule are refused: a GPU has a workgroup for each head of a batch's
// tokens, at most 65,535.
inline constexpr int kDeltaHeadsMax = 127;

// Latent attention (MLA). A head's query and key have `nope` plain and `rope` rotated dimensions.
// All are 0 in a model without it.
struct LatentConfig {
  int query_rank = 0;  // of the query's latent; 0: none
  int kv_rank = 0;
  int nope = 0;
  int rope = 0;
  int value = 0;
  float norm_epsilon = 0;  // of both latents' norms

  // The rows of both projections to the latents; 0 without latent attention.
  int rows() const { return kv_rank > 0 ? query_rank + kv_rank + rope : 0; }
};

// The index of sparse attention: a token attends to the `chosen` best of the positions so far, or
// to all of them while there are no more. Scores: IndexScores in device/operations.h.
struct IndexerConfig {
  int heads = 0;
  int head_dim = 0;
  int chosen = 0;              // positions, in whole pools; 0: the model has no index
  int pool = 1;                // positions that share a key, as PoolKeys in device/operations.h
  int rope = 0;                // dimensions of a key that turn
  bool rotates_pairs = false;  // neighbours turn together, instead of halves

  int chosen_entries() const { return chosen / pool; }
  // The first position from which a token does not attend to all positions so far.
  int first_choosing() const { return chosen + pool - 1; }
};
// The epsilon of its key's layer norm.
inline constexpr float kIndexNormEpsilon = 1e-6f;

// Compressed attention (CompressedAttention in device/operations.h). The layers with entries turn
// by the model's angles, the others by `window_theta` without scaling: always the last dimensions
// of a head. Queries have a latent, LatentConfig::query_rank.
struct CompressedConfig {
  int groups = 0;      // of heads, each with one latent of its results
  int group_rank = 0;  // of that latent
  double window_theta = 0;
};
// More groups are refused: each is a leaf of the cut (model/load/cut.h).
inline constexpr int kHeadGroupsMax = 64;
// More kinds of pools are refused; published models have two.
inline constexpr int kPoolKindsMax = 4;
// Longer pools are refused.
inline constexpr int kEntryPoolMax = 1024;

// "llama3" of Hugging Face's rope_scaling: low frequencies are divided by `factor`, high ones kept,
// and those between blended.
struct Llama3Rope {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 1;
  double original_positions = 0;
};

// "yarn": frequencies slower than beta_slow turns over the original context are divided by
// `factor`, those faster than beta_fast kept, and those between blended.
// https://arxiv.org/abs/2309.00071
struct YarnRope {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  double original_positions = 0;
  double attention_factor = 1;  // applied to cosines and sines
  double softmax_factor = 1;    // applied to the scores of latent attention
  bool truncate = true;         // round the range of pairs to whole pairs
};

// Scales queries by position: 1 + beta * log(1 + floor(position / original_positions)) (Llama 4,
// Ministral 3).
struct QueryScaling {
  double beta = 0;  // 0: none
  double original_positions = 1;
};

// A token uses `chosen` of `count` experts and all shared ones.
struct ExpertsConfig {
  int count = 0;
  int chosen = 0;
  int ffn = 0;         // of one expert
  int shared_ffn = 0;  // of all shared experts together, or of the dense part; 0: none
  int groups = 1;      // experts are chosen from the best `chosen_groups` groups
  int chosen_groups = 1;
  bool normalises = true;  // the weights of the chosen experts sum to 1, before `factor`
  float factor = 1;
};

// The layers without a window, in models where these differ from the others (Gemma 4). Only the
// first `turning_pairs` pairs of dimensions of a head turn, the others are rotated by nothing.
struct FullAttention {
  int head_dim = 0;
  int kv_heads = 0;  // divides those of the other layers
  bool values_are_keys = false;
  double rope_theta = 0;
  int turning_pairs = 0;
};

// The layers that keep a state by the delta rule (https://arxiv.org/abs/2412.06464). Value head h
// belongs to key head h / (value_heads / key_heads).
struct DeltaConfig {
  int key_heads = 0;
  int value_heads = 0;
  int key_dim = 0;
  int value_dim = 0;
  int taps = 0;                  // of the convolutions
  bool groups_inputs = false;    // the inputs are one matrix, by key head
  bool decays_channels = false;  // each row of a state has a decay of its own
  int low_rank = 0;              // between the matrices of the gate, and of the decays; 0: one each
  bool gates_by_sigmoid = false;  // the output; else by silu
  float least_decay = 0;          // its logarithm, as Decay::least in device/operations.h; 0: none

  int decays() const { return decays_channels ? key_dim : 1; }  // of a value head
  int values_per_key() const { return value_heads / key_heads; }
  // Rows of queries, keys and values that belong to one key head.
  int group_channels() const { return 2 * key_dim + values_per_key() * value_dim; }
  int channels() const { return key_heads * group_channels(); }
  // The size of a layer's state for that many key heads: past inputs of the convolutions, then the
  // states of the value heads.
  size_t state_elements(int heads) const {
    const auto past = static_cast<size_t>((taps - 1) * group_channels());
    const auto values = static_cast<size_t>(values_per_key() * value_dim);
    return static_cast<size_t>(heads) * (past + static_cast<size_t>(key_dim) * values);
  }
};

// Residual streams of a token: see StreamGates in device/operations.h. The layers of a model with
// one add to it instead.
struct StreamsConfig {
  int count = 1;
  int rounds = 0;
  float epsilon = 0;
  int low_rank = 0;  // of the gates, if they are mixed element by element

  // Numbers of a token.
  int gates() const { return low_rank > 0 ? count : count * (2 + count); }
};

// Draft layers that guess a block of tokens at once (DSpark of DeepSeek V4): the hidden states that
// `taps` layers leave give their keys of computed positions. The block begins with the token after
// these, all others are `noise`; each sees all of the block and predicts the token after it, whose
// logits then get what follows from the guess before it, by a product of rank `rank`.
struct DraftBlock {
  int size = 0;  // tokens
  int noise = 0;
  int rank = 0;
  int layers = 0;
  std::vector<int> taps;
};
// Larger blocks and more layers are refused; published models have blocks of 5 and three layers.
inline constexpr int kDraftBlockMax = 16;
inline constexpr int kDraftLayersMax = 8;

struct ModelConfig {
  const Architecture* architecture = nullptr;
  int vocab_size = 0;
  int hidden = 0;
  int ffn = 0;  // intermediate_size
  int layers = 0;
  int predicting_layers = 0;  // after these in the files, for further tokens
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int positions_max = 0;  // max_position_embeddings
  float norm_epsilon = 0;
  double rope_theta = 0;
  std::optional<Llama3Rope> llama3_rope;
  std::optional<YarnRope> yarn_rope;
  // (rotary_dims / 2), or empty: each pair's frequency is divided by its factor, before yarn. GGUF
  // files store Llama 3's scaling in this form.
  std::vector<double> rope_factors;
  QueryScaling query_scaling;
  bool tied_embeddings = false;
  bool has_vision = false;  // the model also sees images; that part is not loaded
  bool qkv_bias = false;
  bool head_norms = false;    // an RMS norm over each head of queries and keys
  int rotary_dims = 0;        // the first dimensions of a head are rotated, the rest not
  float attention_scale = 0;  // applied to the scores
  int value_dim = 0;          // of a head's output; head_dim except for latent attention
  float embedding_factor = 1;
  bool rotates_nothing = false;  // all rotary angles are 0
  float logit_cap = 0;           // c: logits are c * tanh(logit / c); 0: as they are
  std::optional<FullAttention> full;
  std::optional<DeltaConfig> delta;
  std::optional<CompressedConfig> compressed;
  std::optional<NgramConfig> ngrams;
  std::vector<int> pools;  // of entries or of means in any layer, each once, ascending
  int layer_input = 0;     // numbers of a token's own input of each layer; 0: none
  float gate_limit = 0;    // of clamped and clipped activations
  StreamsConfig streams;
  LatentConfig latent;
  IndexerConfig indexer;
  ExpertsConfig experts;
  std::optional<DraftBlock> draft_block;
  std::string draft_problem;        // why the draft layers that the file describes cannot be used
  std::vector<LayerTraits> traits;  // (layers), and of the draft layers if they are used

  int heads_per_kv() const { return heads / kv_heads; }
  // Numbers of a token: its inputs of all layers, what is looked up of it before the first layer,
  // and what it is between two stages.
  int layer_inputs() const { return layers * layer_input; }
  int embedded() const { return hidden + layer_inputs(); }
  int passed() const { return stream_columns() + layer_inputs(); }
  // The residual streams of a token lie side by side.
  int stream_columns() const { return streams.count * hidden; }
  const LayerTraits& layer(int index) const { return traits[static_cast<size_t>(index)]; }
  // The rows of the table that a layer is made from.
  const LayerKind& kind(int index) const {
    return layer(index).has_experts ? architecture->sparse : architecture->dense;
  }
  std::span<const WeightSpec> mixer_weights(int index) const {
    return layer(index).is_recurrent() ? architecture->recurrent.weights
                                       : kind(index).mixer_weights;
  }
  // The residual streams of a token that the draft layer continues.
  int draft_streams() const { return architecture->drafts_streams ? streams.count : 1; }
  bool has_draft_layer() const { return traits.size() > static_cast<size_t>(layers); }
  bool guesses_blocks() const { return has_draft_layer() && draft_block.has_value(); }
  int draft_layers() const { return draft_block ? draft_block->layers : 1; }  // if they are used
  // The rows, each as long as a hidden state, that the draft layer's input is made of.
  int draft_inputs() const { return draft_block ? static_cast<int>(draft_block->taps.size()) : 2; }
  // The layers of a stage that has [begin, end) of the model, with draft layers in the last one.
  int end_with_draft(int end) const {
    return end == layers ? static_cast<int>(traits.size()) : end;
  }
  // The first layer with keys and values, which every model has.
  const LayerTraits& attention_layer() const;
  int recurrent_layers(int begin, int end) const;  // how many of [begin, end) are
  int reach() const;  // of the window pages of any layer (StateTraits::reach); 0: there are none
  // Dimensions that turn in layers with other angles than `rotary_dims`; 0: there are none.
  int other_rotary_dims() const {
    if (compressed) return rotary_dims;
    return full ? full->head_dim : 0;
  }
};

// The numbers of rows that a token with so many positions reads in a layer with compressed
// attention: of its window, entries or the chosen ones, and then the index's keys of all of them.
// `Number` may have fractions.
template <class Number>
struct CompressedReads {
  Number rows;
  Number entries;
  Number keys = 0;

  CompressedReads(const ModelConfig& config, const LayerTraits& layer, Number positions)
      : rows(std::min<Number>(layer.window, positions)),
        entries(layer.pool > 0 ? positions / layer.pool : 0) {
    const Number chosen = config.indexer.chosen_entries();
    if (!layer.has_index() || entries <= chosen) return;
    keys = std::exchange(entries, chosen);
  }
  Number bytes(KvKind kind, const StateTraits& state) const {
    const auto of_page = static_cast<Number>(page_head_stride(kind, state.key_dim));
    const Number columns = entries * state.entries.dim + keys * state.index.dim;
    return rows * of_page / kPagePositions + columns * static_cast<Number>(sizeof(float));
  }
};

// `contents` of config.json; for a multimodal model its text model ("text_config") is read.
// kUnsupported names what lockstep does not compute, kCorrupt what is invalid.
Result<ModelConfig> parse_config(std::string_view contents);
// Reads config.json of a model folder, or the metadata of a .gguf file; the message names the file.
Result<ModelConfig> read_config(const std::filesystem::path& model);
// The same for a config.json of any name.
Result<ModelConfig> read_config_file(const std::filesystem::path& path);

}  // namespace lockstep
