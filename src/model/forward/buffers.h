// The memory of a model besides its weights: the state of sequences and the buffers of a pass.
// Model::load allocates it on its device, the planner on one that counts.
#pragma once

#include <vector>

#include "device/device.h"
#include "model/config/config.h"
#include "model/config/kv_kind.h"
#include "model/load/cut.h"

namespace lockstep {

// The facts that determine it.
struct ModelMemory {
  const ModelConfig& config;
  const Cut& cut;
  int rank = 0;
  Range layers;           // of this rank's stage
  size_t tokens_max = 0;  // of a batch
  size_t pages = 0;       // of state
  KvKind kv = kKvDefault;
  size_t page_list_entries_max = 0;

  bool has_head() const { return layers.end == config.layers; }
};

// Places on the device, each for `tokens_max` tokens (the second_ ones for half as many).
struct PassBuffers {
  Slice positions, list_offsets, page_lists, page, slot, rows, places, outputs, hidden_outputs;
  Slice rope, full_rope, hidden, normed, query, key, value, mixed, gate, up, selected, factors;
  Slice query_latent, kv_latent, absorbed, mixed_latent, head_squares;
  Slice scores, chosen, chosen_weights, expert_hidden, expert_scratch;
  Slice embedding_factor;  // one number
  Slice ones;              // the weights of norms without weights
  BufferId partials{}, sum{}, second_partials{}, second_sum{}, logits{};
};

// Whether there are `embedding_factor` and `ones`, which the model writes once.
bool needs_constants(const ModelConfig& config);

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

// A page holds its positions for all layers, so that a short sequence touches little memory.
struct StateBuffer {
  std::vector<LayerPages> layers;  // (all layers), set for this stage's
  uint64_t page_bytes = 0;
  uint64_t bytes = 0;
};
Result<StateBuffer> allocate_state(const ModelMemory& memory, Device& device);

}  // namespace lockstep
