// LayerTraits: what one layer of a model has, resolved once, when its config is read, from the
// architecture's table and from config.json. The loader, the forward pass, pages of state, the
// planner and summaries ask the layer and not the architecture. Immutable.
#pragma once

#include <bitset>
#include <cstddef>

#include "kernels/kernels.h"
#include "model/architectures/architecture.h"

namespace lockstep {

struct ModelConfig;

// The inputs of keys or entries that several positions share: of each position values and gates
// side by side, as they are stored.
struct PoolShape {
  int dim = 0;            // of a key or an entry; 0: there are none
  int pool = 1;           // positions that share it
  int parts = 1;          // 2: a position has inputs for its own pool and for the next one
  bool has_gates = true;  // or values alone, of which the mean is taken

  int input_dim() const { return (has_gates ? 2 : 1) * parts * dim; }
  // Bytes of a page.
  size_t input_bytes(KvKind kind) const { return page_head_stride(kind, input_dim()); }
};

// The part of a page that the index of a layer with sparse attention takes, the same on every rank:
// its keys, one for each position; or, if several positions share a key, first a key and a gate of
// each position, as they are stored, then the pools' keys as float32.
struct IndexShape : PoolShape {
  bool are_rows() const { return parts > 1 || !has_gates; }  // as inputs of entries are stored
  bool has_pools() const { return dim > 0 && pool > 1; }
  // Bytes of a page.
  size_t inputs(KvKind kind) const { return has_pools() ? input_bytes(kind) : 0; }
  size_t keys(KvKind kind) const {
    if (dim == 0) return 0;
    if (!has_pools()) return page_head_stride(kind, dim);
    const int groups = (kPagePositions / pool + kLanes - 1) / kLanes;
    return static_cast<size_t>(groups * kLanes * dim) * sizeof(float);
  }
  size_t bytes(KvKind kind) const { return inputs(kind) + keys(kind); }
};

// The part of a page that entries of compressed attention take, the same on every rank: values and
// gates of each position, as they are stored, then the entries that positions of the page complete,
// as float32. Pools divide a page, or are whole pages.
struct EntryShape : PoolShape {
  int slots() const { return pool < kPagePositions ? kPagePositions / pool : 1; }  // of a page
  // Bytes of a page.
  size_t inputs(KvKind kind) const { return dim > 0 ? input_bytes(kind) : 0; }
  size_t entries() const { return static_cast<size_t>(slots() * dim) * sizeof(float); }
  size_t bytes(KvKind kind) const { return inputs(kind) + entries(); }
};

// The state that a layer keeps of each position: heads of keys and values, and the key of its
// index, in pages. A recurrent layer has none: it keeps one state of a sequence
// (ModelConfig::delta). The part that only the next `reach` positions need is in window pages,
// which are fewer (model/load/sequence_state.h): all of it, or with compressed attention all but
// the entries and the keys of their index.
struct StateTraits {
  int heads = 0;              // in the whole model
  bool is_shared = false;     // one head for all query heads, so that every rank has it: a latent
  int key_dim = 0;            // of one head
  int value_dim = 0;          // at most key_dim
  bool is_rows = false;       // a key is its own value, and stored once, as values are
  bool has_key_rows = false;  // keys are stored as values are, but apart from these
  EntryShape entries;         // which every rank has, like the index
  IndexShape index;
  int reach = 0;  // 0: all later positions need all of it

  // Bytes of a page, for some of its heads: together, and those in window pages.
  size_t bytes(KvKind kind, int own_heads) const {
    return heads_bytes(kind, own_heads) + entries.bytes(kind) + index.bytes(kind);
  }
  size_t window_bytes(KvKind kind, int own_heads) const {
    if (reach == 0) return 0;
    return heads_bytes(kind, own_heads) + entries.inputs(kind) + index.inputs(kind);
  }

 private:
  size_t heads_bytes(KvKind kind, int own_heads) const {
    const size_t head = page_head_stride(kind, key_dim) * (is_rows ? 1 : 2);
    return static_cast<size_t>(own_heads) * head;
  }
};

struct LayerTraits {
  Mixer mixer = Mixer::kAttention;
  bool has_experts = false;
  RouterForm scores = RouterForm::kSoftmax;
  Gating gating = Gating::kSilu;
  int window = 0;                 // attention reaches back this many positions; 0: all
  bool joins_head_norms = false;  // if it has these: over all heads of all ranks, not over each
  // One head of queries and keys, and of the output; equal except for latent attention.
  int head_dim = 0;
  int value_dim = 0;
  bool norms_values = false;
  bool has_other_rope = false;  // by the angles of ModelConfig::full or of ::compressed
  bool gates_output = false;    // each head of the query projection is a query and a gate
  int ffn = 0;                  // columns of the dense feed-forward part
  // If the model has an index: attends to the positions that the layer before it has chosen.
  bool shares_choice = false;
  int pool = 0;  // positions of an entry of compressed attention; 0: it has no entries
  bool has_given_experts = false;  // by a token's id
  bool adds_ngrams = false;        // to the streams, before anything else
  int streams = 1;                 // of the residual
  StateTraits state;
  int state_layer = -1;  // attention reads the state of this earlier layer; -1: its own
  std::bitset<kRoleCount> weights;

  // A norm, a bias, sinks or shared experts are what the table lists and the checkpoint has.
  bool has(Role role) const { return weights[static_cast<size_t>(role)]; }
  bool is_latent() const { return mixer == Mixer::kLatentAttention; }
  bool is_recurrent() const { return mixer == Mixer::kDeltaRule; }
  bool is_compressed() const { return mixer == Mixer::kCompressedAttention; }
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
// Lets the model use its draft layer or layers, which its architecture must have.
void add_draft_layer(ModelConfig& config);

}  // namespace lockstep
