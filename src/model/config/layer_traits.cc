#include "model/config/layer_traits.h"

#include <span>

#include "base/check.h"
#include "model/config/config.h"

namespace lockstep {
namespace {

// In the absorbed form the latent is the key of all heads, and its first part is their value.
StateTraits state_of(Mixer mixer, const ModelConfig& config) {
  switch (mixer) {
    case Mixer::kAttention:
      return {.heads = config.kv_heads, .key_dim = config.head_dim, .value_dim = config.head_dim};
    case Mixer::kLatentAttention:
      return {.heads = 1,
              .is_shared = true,
              .key_dim = config.latent.kv_rank + config.latent.rope,
              .value_dim = config.latent.kv_rank};
  }
  LOCKSTEP_CHECK(false);
  return {};
}

}  // namespace

bool is_stored(When when, const ModelConfig& config) {
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
  }
  LOCKSTEP_CHECK(false);
  return false;
}

void resolve_traits(ModelConfig& config) {
  for (int layer = 0; layer < config.layers; ++layer) {
    LayerTraits& traits = config.traits[static_cast<size_t>(layer)];
    const LayerKind& kind = config.kind(layer);
    traits.mixer = kind.mixer;
    traits.has_experts = kind.feed_forward == FeedForward::kExperts;
    traits.scores = kind.scores;
    traits.gating = kind.gating;
    traits.joins_head_norms = config.head_norms && config.architecture->joins_head_norms;
    traits.state = state_of(kind.mixer, config);
    for (const std::span<const WeightSpec> specs :
         {kind.mixer_weights, kind.feed_forward_weights}) {
      for (const WeightSpec& spec : specs) {
        if (is_stored(spec.when, config)) traits.weights.set(static_cast<size_t>(spec.role));
      }
    }
  }
}

}  // namespace lockstep
