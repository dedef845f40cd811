// The memory of a model besides its weights: the state of sequences and the buffers of a pass.
// Model::load allocates it on its device, the planner on one that counts.
#pragma once

#include <array>
#include <vector>

#include "device/device.h"
#include "model/config/config.h"
#include "model/load/cut.h"
#include "model/load/page_shape.h"
#include "model/options/kv_kind.h"

namespace lockstep {

// The facts that determine it.
struct ModelMemory {
  const ModelConfig& config;
  const Cut& cut;
  int rank = 0;
  Range layers;             // of this rank's stage
  size_t tokens_max = 0;    // of a batch
  size_t pages = 0;         // of state
  size_t window_pages = 0;  // 0: the pages have everything
  KvKind kv = kKvDefault;
  size_t page_list_entries_max = 0;
  size_t states = 0;  // of recurrent layers

  bool has_head() const { return layers.end == config.layers; }
  bool has_draft_layer() const { return has_head() && config.has_draft_layer(); }
  // Whether a part of the layer's state is in window pages.
  bool has_window(int layer) const {
    return window_pages > 0 && config.layer(layer).state.reach > 0;
  }
};

// The entries of one length of pool that the tokens of a pass complete, in the tokens' order.
struct EntryBuffers {
  Slice last;          // int32: the position that completes it
  Slice list_offsets;  // int32: of the token's page list
  Slice page, slot;    // int32: its place
  Slice rope;          // for the first position of its pool
  int count = 0;

  void skip(int entries, int rotary_dims);
};

// Places on the device, each for `tokens_max` tokens (the second_ ones for half as many).
struct PassBuffers {
  Slice positions, list_offsets, page_lists, page, slot, rows, places, outputs, hidden_outputs;
  Slice window_offsets, window_page;  // as `list_offsets` and `page`, of window pages
  Slice rope, other_rope, hidden, normed, query, key, value, mixed, gate, up, selected, factors;
  Slice query_latent, kv_latent, absorbed, mixed_latent, head_squares;
  Slice scores, chosen, chosen_weights, expert_hidden, expert_scratch;
  Slice product;  // of several that are summed together, if the rank has several subtrees
  Slice layer_inputs, layer_parts, layer_gate;
  Slice embedding_factor;  // one number
  Slice layer_factor;      // one number
  Slice streams_mean;      // the weights of the mean of several residual streams
  Slice ones;              // the weights of norms without weights
  Slice states_from, states_to;
  // The delta rule. The grouped ones hold its inputs by key head, before they are taken apart.
  Slice delta_grouped, delta_grouped_rates;
  Slice delta_query, delta_key, delta_value, delta_gate, delta_rate, delta_decay;
  Slice delta_gate_low, delta_decay_low;
  Slice delta_query_norm, delta_key_norm;  // (key_dim): they make norms of RMS norms
  Slice gated_query, query_gate;           // of attention whose output has a gate
  // Compressed attention: angles that turn results back, the last entry that a token sees, one of
  // its inputs by parts and as a row, entries, and the latents of groups of heads.
  Slice rope_back, other_rope_back, last_entry;
  Slice entry_values, entry_gates, entry_inputs, entry_rows, group_latents;
  std::array<EntryBuffers, kPoolKindsMax> entries;  // as ModelConfig::pools has them
  Slice token_ids, given;                           // int32; the experts that are given, as floats
  Slice shared_score;
  // The index has a key, queries and weights of its heads, the scores of `index_tokens` tokens, and
  // a bit for each position of every token.
  Slice index_key, index_query, index_weights, index_scores, mask;
  // With pools: a position's gate, and its key and gate side by side.
  Slice index_gate, index_pair;
  // Several residual streams: `hidden` has all of a token, side by side. Their norm, and the gates
  // of the current part of the layer.
  Slice streams_normed, stream_gates;
  // If they are mixed element by element: the latent of their gates, and the gates.
  Slice streams_low, streams_mix;
  // N-grams: rows of the table and the places of all ranks' rows, both int32 (tokens, heads); a
  // token's rows, their keys and value.
  Slice ngram_rows, ngram_places, ngram_embedded, ngram_keys, ngram_value;
  // The draft layer: which hidden states it continues; those of the last pass of the model, then of
  // its own; and its input, two rows side by side.
  Slice draft_rows, draft_hidden, draft_input;
  // If it guesses blocks, `draft_hidden` has the taps of the last pass. The last position of each
  // token's block, and the row of a previous token.
  Slice block_end, draft_previous;
  int index_tokens = 0;
  int index_pages = 0;  // that a sequence may have
  BufferId partials{}, sum{}, second_partials{}, second_sum{}, logits{};
};

// A bit for each position.
inline constexpr int kMaskWordsOfPage = kPagePositions / 32;

// The numbers at `embedding_factor`, `layer_factor`, `streams_mean` and `ones`, one after the
// other, which the model writes once; empty if it needs none of them.
std::vector<float> pass_constants(const ModelConfig& config);

// Contents are undefined.
Result<PassBuffers> allocate_buffers(const ModelMemory& memory, Device& device);

// A rank's part of the state of a layer.
struct StateShape {
  Range heads;  // of keys and values
  int key_dim = 0;
  int value_dim = 0;

  size_t bytes(KvKind kind) const;  // of a page: keys, or values, which lie as far apart
};
StateShape state_shape(const StateTraits& state, const Cut& cut, int rank);

// A page holds its positions for all layers, so that a short sequence touches little memory; so
// does a window page for the layers that have a part there.
struct StateBuffer {
  std::vector<LayerPages> layers;   // (all layers), set for this stage's
  std::vector<LayerPages> indexes;  // of keys alone; the same, for layers that have an index
  // With pools: of the keys and gates that theirs are made of.
  std::vector<LayerPages> index_inputs;
  // Entries of compressed attention, and the values and gates that they are made of.
  std::vector<LayerPages> entries;
  std::vector<LayerPages> entry_inputs;
  uint64_t page_bytes = 0;
  uint64_t window_bytes = 0;  // of a window page
  uint64_t bytes = 0;
};
Result<StateBuffer> allocate_state(const ModelMemory& memory, Device& device);

// A page itself, or its window page.
enum class StatePart : uint8_t { kPage, kWindow };
// The bytes of a layer in one, for some of its heads. Recurrent layers, and those that use an
// earlier one's state, have none.
size_t part_bytes(const ModelMemory& memory, StatePart part, int layer, int heads);
// The key/value heads of the layer that has the most, of those with such a part in any stage.
int block_heads(const ModelMemory& memory, StatePart part);
// A rank's part of one outside the device. Layers are counted among those that have such a part.
PageShape part_shape(const ModelMemory& memory, StatePart part);

// A rank's part of the state of a recurrent layer, in floats: past inputs of the convolutions of
// queries, keys and values, each (taps - 1, channels), then (value heads, key_dim, value_dim).
struct DeltaShape {
  int key_heads = 0;
  int value_heads = 0;
  std::array<int, 3> channels{};  // of queries, keys and values
  std::array<size_t, 3> past{};   // where their past inputs begin
  size_t heads_at = 0;            // where the states of the heads begin
  size_t size = 0;
};
DeltaShape delta_shape(const DeltaConfig& delta, const Cut& cut, int rank);

// All layers' states of one number lie together.
struct RecurrentBuffer {
  std::vector<Slice> layers;  // (all layers) of number 0; set for this stage's recurrent ones
  Slice ngrams;               // of number 0: past inputs of the convolution; if the stage has it
  size_t stride = 0;          // elements, from one number to the next
  uint64_t bytes = 0;
};
Result<RecurrentBuffer> allocate_recurrent(const ModelMemory& memory, Device& device);

// Whether a stage with these layers adds rows of n-grams.
bool has_ngrams(const ModelConfig& config, Range layers);
// The state of n-grams in units of a head's state of a recurrent layer, rounded up.
int ngram_blocks(const ModelConfig& config);
// A rank's part of the state of all these layers, outside the device. The state of n-grams is the
// same on every rank. It comes first, as layers whose blocks are those of the others in size: each
// head has all of it, and a rank without heads takes that of head 0.
PageShape recurrent_shape(const ModelConfig& config, const Cut& cut, int rank, Range layers);

}  // namespace lockstep
