// LayerTraits: what one layer of a model has, resolved once, when its config is read, from the
// architecture's table and from config.json. The loader, the forward pass, pages of state, the
// planner and summaries ask the layer and not the architecture. Another kind of state (a ring)
// would be described here. Immutable.
#pragma once

#include <bitset>
#include <cstddef>

#include "kernels/kernels.h"
#include "model/architectures/architecture.h"

namespace lockstep {

struct ModelConfig;

// The part of a page that the index of a layer with sparse attention takes, the same on every rank:
// its keys, one for each position; or, if several positions share a key, first a key and a gate of
// each position, as they are stored, then the pools' keys as float32.
struct IndexShape {
  int dim = 0;   // of a key; 0: there is no index
  int pool = 1;  // positions that share a key

  bool has_pools() const { return dim > 0 && pool > 1; }
  // Bytes of a page.
  size_t inputs(KvKind kind) const { return has_pools() ? page_head_stride(kind, 2 * dim) : 0; }
  size_t keys(KvKind kind) const {
    if (dim == 0) return 0;
    if (!has_pools()) return page_head_stride(kind, dim);
    const int groups = (kPagePositions / pool + kLanes - 1) / kLanes;
    return static_cast<size_t>(groups * kLanes * dim) * sizeof(float);
  }
  size_t bytes(KvKind kind) const { return inputs(kind) + keys(kind); }
};

// The state that a layer keeps of each position: heads of keys and values, and the key of its
// index, in pages. A recurrent layer has none: it keeps one state of a sequence
// (ModelConfig::delta).
struct StateTraits {
  int heads = 0;           // in the whole model
  bool is_shared = false;  // one head for all query heads, so that every rank has it: a latent
  int key_dim = 0;         // of one head
  int value_dim = 0;       // at most key_dim
  IndexShape index;        // which every rank has
};

struct LayerTraits {
  Mixer mixer = Mixer::kAttention;
  bool has_experts = false;
  RouterScores scores = RouterScores::kSoftmax;
  Gating gating = Gating::kSilu;
  int window = 0;                 // attention reaches back this many positions; 0: all
  bool joins_head_norms = false;  // if it has these: over all heads of all ranks, not over each
  // One head of queries and keys, and of the output; equal except for latent attention.
  int head_dim = 0;
  int value_dim = 0;
  bool norms_values = false;
  bool has_full_rope = false;  // by the angles of ModelConfig::full
  bool gates_output = false;   // each head of the query projection is a query and a gate
  int ffn = 0;                 // columns of the dense feed-forward part
  // If the model has an index: attends to the positions that the layer before it has chosen.
  bool shares_choice = false;
  int streams = 1;  // of the residual
  StateTraits state;
  int state_layer = -1;  // attention reads the state of this earlier layer; -1: its own
  std::bitset<kRoleCount> weights;

  // A norm, a bias, sinks or shared experts are what the table lists and the checkpoint has.
  bool has(Role role) const { return weights[static_cast<size_t>(role)]; }
  bool is_latent() const { return mixer == Mixer::kLatentAttention; }
  bool is_recurrent() const { return mixer == Mixer::kDeltaRule; }
  bool has_state() const { return state_layer < 0; }
  // The vectors of a token that are summed over ranks after the feed-forward part: the dense part
  // and the experts apart, if each has a norm of its own.
  int feed_forward_sums() const { return has(Role::kExpertsPostNorm) ? 2 : 1; }
  bool has_index() const { return state.index.dim > 0; }
};

// Whether a checkpoint of this model has the weights of such a row.
// `layer`: -1 for weights that no layer has.
bool is_stored(When when, const ModelConfig& config, int layer);
// Completes `config.traits`, whose `has_experts`, `window`, recurrent mixers, `state_layer` and
// `ffn` (0: the model's) have been read. An architecture whose layers all have experts needs no
// list of them.
void resolve_traits(ModelConfig& config);
// Lets the model use its draft layer, which its architecture must have.
void add_draft_layer(ModelConfig& config);

}  // namespace lockstep
