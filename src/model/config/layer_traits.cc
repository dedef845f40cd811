#include "model/config/layer_traits.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "model/config/config.h"

namespace lockstep {
namespace {

// In the absorbed form the latent is the key of all heads, and its first part is their value.
StateTraits state_of(Mixer mixer, const ModelConfig& config, bool is_full) {
  switch (mixer) {
    case Mixer::kAttention: {
      const int heads = is_full ? config.full->kv_heads : config.kv_heads;
      const int head_dim = is_full ? config.full->head_dim : config.head_dim;
      return {.heads = heads,
              .key_dim = head_dim,
              .value_dim = head_dim,
              .has_key_rows = config.architecture->indexes_blocks};
    }
    case Mixer::kLatentAttention:
      return {.heads = 1,
              .is_shared = true,
              .key_dim = config.latent.kv_rank + config.latent.rope,
              .value_dim = config.latent.kv_rank};
    case Mixer::kDeltaRule:
      return {};
    case Mixer::kCompressedAttention:
      return {.heads = 1,
              .is_shared = true,
              .key_dim = config.head_dim,
              .value_dim = config.head_dim,
              .is_rows = true};
  }
  LOCKSTEP_CHECK(false);
  return {};
}

// The pools that choose among entries are made of two, and have an index.
void add_entries(const ModelConfig& config, LayerTraits& traits) {
  if (traits.pool == 0) return;
  const bool chooses = traits.pool == config.indexer.pool;
  const int parts = chooses ? 2 : 1;
  traits.state.entries = {{config.head_dim, traits.pool, parts}};
  if (chooses) traits.state.index = {{config.indexer.head_dim, traits.pool, parts}};
}

// A position's inputs of entries are needed until those of its pool, and of the next one if they
// overlap, are complete. Models with recurrent layers take whole beginnings over only at their
// states, draft layers are few, and layers that choose positions look at all of them: none of these
// has window pages.
int reach_of(const ModelConfig& config, const LayerTraits& traits, bool is_draft) {
  const bool chooses_positions = config.indexer.chosen > 0 && !config.compressed;
  if (traits.window == 0 || is_draft || config.delta || chooses_positions) return 0;
  const EntryShape& entries = traits.state.entries;
  return std::max(traits.window, entries.dim > 0 ? entries.pool * entries.parts : 0);
}

void resolve_layer(ModelConfig& config, int layer) {
  LayerTraits& traits = config.traits[static_cast<size_t>(layer)];
  const LayerKind& kind = config.kind(layer);
  if (!traits.is_recurrent()) traits.mixer = kind.mixer;
  traits.has_experts = kind.feed_forward == FeedForward::kExperts;
  traits.scores = kind.scores;
  traits.gating = kind.gating;
  traits.joins_head_norms = config.head_norms && config.architecture->joins_head_norms;
  const bool is_full = config.full && traits.window == 0;
  traits.norms_values = config.architecture->norms_values;
  traits.has_other_rope = is_full || (traits.is_compressed() && traits.pool == 0);
  traits.head_dim = is_full ? config.full->head_dim : config.head_dim;
  traits.value_dim = is_full ? config.full->head_dim : config.value_dim;
  traits.gates_output = config.architecture->gates_attention && !traits.is_recurrent();
  if (traits.ffn == 0) traits.ffn = config.ffn;
  traits.state = state_of(traits.mixer, config, is_full);
  if (traits.is_compressed()) {
    add_entries(config, traits);
  } else if (!traits.shares_choice && !traits.is_recurrent()) {
    traits.state.index = {{.dim = config.indexer.head_dim,
                           .pool = config.indexer.pool,
                           .has_gates = !config.architecture->indexes_blocks}};
  }
  const bool is_draft = layer >= config.layers;
  traits.state.reach = reach_of(config, traits, is_draft);
  if (!is_draft || config.architecture->drafts_streams) traits.streams = config.streams.count;
  for (const std::span<const WeightSpec> specs :
       {config.mixer_weights(layer), kind.feed_forward_weights, config.architecture->every_layer}) {
    for (const WeightSpec& spec : specs) {
      if (is_stored(spec.when, config, layer)) traits.weights.set(static_cast<size_t>(spec.role));
    }
  }
}

}  // namespace

bool is_stored(When when, const ModelConfig& config, int layer) {
  switch (when) {
    case When::kAlways:
      return true;
    case When::kUntied:
      return !config.tied_embeddings;
    case When::kQkvBias:
      return config.qkv_bias;
    case When::kHeadNorms:
      return config.head_norms;
    case When::kSharedExperts:
      return config.experts.shared_ffn > 0;
    case When::kQueryLatent:
      return config.latent.query_rank > 0;
    case When::kNoQueryLatent:
      return config.latent.query_rank == 0;
    case When::kOwnValues:
      return config.layer(layer).has_state() &&
             !(config.full && config.full->values_are_keys && config.layer(layer).window == 0);
    case When::kOwnKeys:
      return config.layer(layer).has_state();
    case When::kLayerInputs:
      return config.layer_input > 0;
    case When::kGroupedInput:
      return config.delta->groups_inputs;
    case When::kSeparateInput:
      return !config.delta->groups_inputs;
    case When::kIndexer:
      return config.layer(layer).has_index();
    case When::kIndexPools:
      return config.indexer.pool > 1;
    case When::kStreams:
      return config.layer(layer).streams > 1;
    case When::kEntries:
      return config.layer(layer).pool > 0;
    case When::kGivenExperts:
      return config.layer(layer).has_given_experts;
    case When::kChosenExperts:
      return !config.layer(layer).has_given_experts;
    case When::kNgrams:
      return config.layer(layer).adds_ngrams;
  }
  LOCKSTEP_CHECK(false);
  return false;
}

void resolve_traits(ModelConfig& config) {
  for (int layer = 0; layer < config.layers; ++layer) resolve_layer(config, layer);
}

void add_draft_layer(ModelConfig& config) {
  LOCKSTEP_CHECK(!config.architecture->draft.weights.empty() && !config.has_draft_layer());
  for (int i = 0; i < config.draft_layers(); ++i) {
    LayerTraits& traits = config.traits.emplace_back();
    traits.has_experts = config.experts.count > 0;
    if (config.compressed) traits.window = config.layer(0).window;
    resolve_layer(config, config.layers + i);
  }
}

}  // namespace lockstep
