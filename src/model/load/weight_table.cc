#include "model/load/weight_table.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"

namespace lockstep {
namespace {

struct Shape {
  int rows;
  int columns;
  bool is_vector = false;
};

Shape vector_of(int size) {
  return {size, 1, true};
}

// The weights of entries and of the keys of their index.
Shape entry_shape_of(Role role, const ModelConfig& config, const LayerTraits& layer) {
  const EntryShape& entries = layer.state.entries;
  const IndexShape& index = layer.state.index;
  switch (role) {
    case Role::kEntryValues:
    case Role::kEntryGates:
      return {entries.parts * entries.dim, config.hidden};
    case Role::kEntryBias:
      return vector_of(entries.pool * entries.parts * entries.dim);
    case Role::kEntryNorm:
      return vector_of(entries.dim);
    case Role::kIndexEntryValues:
    case Role::kIndexEntryGates:
      return {index.parts * index.dim, config.hidden};
    case Role::kIndexEntryBias:
      return vector_of(index.pool * index.parts * index.dim);
    case Role::kIndexEntryNorm:
      return vector_of(index.dim);
    default:
      LOCKSTEP_CHECK(false);
      return {};
  }
}

Shape compressed_shape_of(Role role, const ModelConfig& config, const LayerTraits& layer) {
  const CompressedConfig& compressed = *config.compressed;
  switch (role) {
    case Role::kQueryDown:
      return {config.latent.query_rank, config.hidden};
    case Role::kQueryDownNorm:
      return vector_of(config.latent.query_rank);
    case Role::kSharedKey:
      return {layer.head_dim, config.hidden};
    case Role::kSharedKeyNorm:
      return vector_of(layer.head_dim);
    case Role::kGroupOut:
      return {compressed.groups * compressed.group_rank,
              config.heads / compressed.groups * layer.head_dim};
    case Role::kAttentionOut:
      return {config.hidden, compressed.groups * compressed.group_rank};
    case Role::kIndexQuery:
      return {config.indexer.heads * config.indexer.head_dim, config.latent.query_rank};
    case Role::kIndexWeights:
      return {config.indexer.heads, config.hidden};
    default:
      return entry_shape_of(role, config, layer);
  }
}

// The index of latent attention, or of grouped attention.
Shape index_shape_of(Role role, const ModelConfig& config) {
  const IndexerConfig& indexer = config.indexer;
  switch (role) {
    case Role::kIndexQuery:
      return {indexer.heads * indexer.head_dim, config.latent.query_rank};
    case Role::kIndexKey:
      return {indexer.head_dim, config.hidden};
    case Role::kIndexKeyNorm:
    case Role::kIndexKeyNormBias:
      return vector_of(indexer.head_dim);
    case Role::kIndexWeights:
      return {indexer.heads, config.hidden};
    case Role::kIndexPoolGate:
      return {indexer.head_dim, config.hidden};
    case Role::kIndexPoolBias:
      return vector_of(indexer.pool * indexer.head_dim);
    case Role::kIndexQueryKey:
      return {(indexer.heads + 1) * indexer.head_dim, config.hidden};
    case Role::kIndexQueryNorm:
      return vector_of(indexer.head_dim);
    default:
      LOCKSTEP_CHECK(false);
      return {};
  }
}

Shape latent_shape_of(Role role, const ModelConfig& config) {
  const LatentConfig& latent = config.latent;
  switch (role) {
    case Role::kQueryDown:
      return {latent.query_rank, config.hidden};
    case Role::kQueryDownNorm:
      return vector_of(latent.query_rank);
    case Role::kKvDown:
      return {latent.kv_rank + latent.rope, config.hidden};
    case Role::kKvDownNorm:
      return vector_of(latent.kv_rank);
    case Role::kKvUp:
      return {config.heads * (latent.nope + latent.value), latent.kv_rank};
    default:
      return index_shape_of(role, config);
  }
}

Shape delta_shape_of(Role role, const ModelConfig& config) {
  const DeltaConfig& delta = *config.delta;
  const int values = delta.value_heads * delta.value_dim;
  const int between = delta.low_rank > 0 ? delta.low_rank : config.hidden;
  switch (role) {
    case Role::kDeltaInput:
      return {delta.channels(), config.hidden};
    case Role::kDeltaGroupedInput:
      return {delta.channels() + values, config.hidden};
    case Role::kDeltaGroupedRates:
      return {2 * delta.value_heads, config.hidden};
    case Role::kDeltaGate:
      return {values, between};
    case Role::kDeltaRate:
      return {delta.value_heads, config.hidden};
    case Role::kDeltaDecay:
      return {delta.value_heads * delta.decays(), between};
    case Role::kDeltaGateDown:
    case Role::kDeltaDecayDown:
      return {delta.low_rank, config.hidden};
    case Role::kDeltaQuery:
    case Role::kDeltaKey:
      return {delta.key_heads * delta.key_dim, config.hidden};
    case Role::kDeltaValue:
      return {values, config.hidden};
    case Role::kDeltaQueryConvolution:
    case Role::kDeltaKeyConvolution:
      return vector_of(delta.key_heads * delta.key_dim * delta.taps);
    case Role::kDeltaValueConvolution:
      return vector_of(values * delta.taps);
    case Role::kDeltaConvolution:
      return vector_of(delta.channels() * delta.taps);
    case Role::kDeltaDecayRate:
      return vector_of(delta.value_heads);
    case Role::kDeltaDecayBias:
      return vector_of(delta.value_heads * delta.decays());
    case Role::kDeltaNorm:
      return vector_of(delta.value_dim);
    case Role::kDeltaOut:
      return {config.hidden, values};
    default:
      LOCKSTEP_CHECK(false);
      return {};
  }
}

Shape layer_input_shape_of(Role role, const ModelConfig& config) {
  switch (role) {
    case Role::kLayerEmbedding:
      return {config.vocab_size, config.layer_inputs()};
    case Role::kLayerProjection:
      return {config.layer_inputs(), config.hidden};
    case Role::kLayerProjectionNorm:
      return vector_of(config.layer_input);
    case Role::kLayerInputGate:
      return {config.layer_input, config.hidden};
    case Role::kLayerInputOut:
      return {config.hidden, config.layer_input};
    default:
      LOCKSTEP_CHECK(false);
      return {};
  }
}

Shape streams_shape_of(Role role, const ModelConfig& config) {
  const int streams = config.streams.count, gates = config.streams.gates();
  switch (role) {
    case Role::kAttentionStreams:
    case Role::kFeedForwardStreams:
      return {gates, config.stream_columns()};
    case Role::kAttentionStreamsScale:
    case Role::kFeedForwardStreamsScale:
      return vector_of(3);
    case Role::kAttentionStreamsBias:
    case Role::kFeedForwardStreamsBias:
      return vector_of(gates);
    case Role::kLastStreams:
      return {streams, config.stream_columns()};
    case Role::kAttentionStreamsDown:
    case Role::kFeedForwardStreamsDown:
    case Role::kLastStreamsDown:
      return {config.streams.low_rank, config.stream_columns()};
    case Role::kAttentionStreamsUp:
    case Role::kFeedForwardStreamsUp:
    case Role::kLastStreamsUp:
      return {config.stream_columns(), config.streams.low_rank};
    case Role::kAttentionStreamsInject:
    case Role::kFeedForwardStreamsInject:
      return {streams, config.stream_columns()};
    case Role::kAttentionStreamsNorm:
    case Role::kFeedForwardStreamsNorm:
    case Role::kLastStreamsNorm:
      return vector_of(config.stream_columns());
    case Role::kLastStreamsScale:
      return vector_of(1);
    case Role::kLastStreamsBias:
      return vector_of(streams);
    default:
      LOCKSTEP_CHECK(false);
      return {};
  }
}

Shape ngram_shape_of(Role role, const ModelConfig& config) {
  const NgramConfig& ngrams = *config.ngrams;
  const int channels = config.stream_columns();
  switch (role) {
    case Role::kNgramRows:
      return {ngrams.part_rows, ngrams.row};
    case Role::kNgramMultipliers:
      return vector_of(ngrams.size);
    case Role::kNgramHeadRows:
    case Role::kNgramOffsets:
      return vector_of(ngrams.heads);
    case Role::kNgramKey:
      return {channels, ngrams.columns()};
    case Role::kNgramValue:
      return {config.hidden, ngrams.columns()};
    case Role::kNgramKeyNorm:
    case Role::kNgramQueryNorm:
    case Role::kNgramConvolutionNorm:
      return vector_of(channels);
    case Role::kNgramConvolution:
      return vector_of(channels * ngrams.taps);
    default:
      LOCKSTEP_CHECK(false);
      return {};
  }
}

Shape experts_shape_of(Role role, const ModelConfig& config) {
  switch (role) {
    case Role::kRouter:
      return {config.experts.count, config.hidden};
    case Role::kRouterBias:
    case Role::kExpertScales:
      return vector_of(config.experts.count);
    case Role::kRouterTable:
      return vector_of(config.vocab_size * config.experts.chosen);
    case Role::kExpertGate:
    case Role::kExpertUp:
      return {config.experts.ffn, config.hidden};
    case Role::kExpertDown:
      return {config.hidden, config.experts.ffn};
    case Role::kSharedGate:
    case Role::kSharedUp:
      return {config.experts.shared_ffn, config.hidden};
    case Role::kSharedDown:
      return {config.hidden, config.experts.shared_ffn};
    case Role::kExpertGateBias:
    case Role::kExpertUpBias:
      return vector_of(config.experts.ffn);
    default:
      LOCKSTEP_CHECK(false);
      return {};
  }
}

Shape attention_shape_of(Role role, const ModelConfig& config, const LayerTraits& layer) {
  const int query_rank = config.latent.query_rank, kv_heads = layer.state.heads;
  switch (role) {
    case Role::kQueryNorm:
      return vector_of(layer.head_dim * (layer.joins_head_norms ? config.heads : 1));
    case Role::kKeyNorm:
      return vector_of(layer.head_dim * (layer.joins_head_norms ? kv_heads : 1));
    case Role::kQueryBias:
      return vector_of(config.heads * layer.head_dim);
    case Role::kKeyBias:
    case Role::kValueBias:
      return vector_of(kv_heads * layer.head_dim);
    case Role::kQuery:
      return {config.heads * layer.head_dim * (layer.gates_output ? 2 : 1),
              query_rank > 0 ? query_rank : config.hidden};
    case Role::kKey:
    case Role::kValue:
      return {kv_heads * layer.head_dim, config.hidden};
    case Role::kAttentionOut:
      return {config.hidden, config.heads * layer.value_dim};
    case Role::kSinks:
      return vector_of(config.heads);
    default:
      LOCKSTEP_CHECK(false);
      return {};
  }
}

// Weights of a part of a layer.
Shape part_shape_of(Role role, const ModelConfig& config, const LayerTraits& layer) {
  if (is_of_ngrams(role)) return ngram_shape_of(role, config);
  if (is_of_mixed_streams(role)) return streams_shape_of(role, config);
  switch (role) {
    case Role::kQueryNorm:
    case Role::kKeyNorm:
    case Role::kQueryBias:
    case Role::kKeyBias:
    case Role::kValueBias:
    case Role::kQuery:
    case Role::kKey:
    case Role::kValue:
    case Role::kSinks:
      return attention_shape_of(role, config, layer);
    case Role::kAttentionOut:
      return layer.is_compressed() ? compressed_shape_of(role, config, layer)
                                   : attention_shape_of(role, config, layer);
    case Role::kRouter:
    case Role::kRouterBias:
    case Role::kRouterTable:
    case Role::kExpertScales:
    case Role::kExpertGate:
    case Role::kExpertUp:
    case Role::kExpertDown:
    case Role::kSharedGate:
    case Role::kSharedUp:
    case Role::kSharedDown:
    case Role::kExpertGateBias:
    case Role::kExpertUpBias:
      return experts_shape_of(role, config);
    case Role::kLayerEmbedding:
    case Role::kLayerProjection:
    case Role::kLayerProjectionNorm:
    case Role::kLayerInputGate:
    case Role::kLayerInputOut:
      return layer_input_shape_of(role, config);
    case Role::kAttentionStreams:
    case Role::kAttentionStreamsScale:
    case Role::kAttentionStreamsBias:
    case Role::kFeedForwardStreams:
    case Role::kFeedForwardStreamsScale:
    case Role::kFeedForwardStreamsBias:
    case Role::kLastStreams:
    case Role::kLastStreamsScale:
    case Role::kLastStreamsBias:
      return streams_shape_of(role, config);
    default:
      if (layer.is_compressed()) return compressed_shape_of(role, config, layer);
      return config.delta && layer.is_recurrent() ? delta_shape_of(role, config)
                                                  : latent_shape_of(role, config);
  }
}

Shape shape_of(Role role, const ModelConfig& config, const LayerTraits& layer) {
  switch (role) {
    case Role::kEmbedding:
    case Role::kLogits:
      return {config.vocab_size, config.hidden};
    case Role::kFinalNorm:
    case Role::kAttentionNorm:
    case Role::kFeedForwardNorm:
    case Role::kAttentionPostNorm:
    case Role::kFeedForwardPostNorm:
    case Role::kRouterNorm:
    case Role::kExpertsNorm:
    case Role::kDensePostNorm:
    case Role::kExpertsPostNorm:
    case Role::kLayerInputNorm:
    case Role::kDraftTokenNorm:
    case Role::kDraftNorm:
    case Role::kAttentionOutBias:
    case Role::kExpertDownBias:
      return vector_of(config.hidden);
    case Role::kDraftHiddenNorm:  // of each stream, or of all together
      return vector_of(config.hidden *
                       (config.architecture->mixes_streams ? config.streams.count : 1));
    case Role::kDraftInput:
      return {config.hidden, config.draft_inputs() * config.hidden};
    case Role::kDraftPrevious:
    case Role::kDraftFollowing:
      return {config.vocab_size, config.draft_block->rank};
    case Role::kDraftTokenInput:
    case Role::kDraftHiddenInput:
      return {config.hidden, config.hidden};
    case Role::kGate:
    case Role::kUp:
      return {layer.ffn, config.hidden};
    case Role::kDown:
      return {config.hidden, layer.ffn};
    case Role::kLayerScale:
      return vector_of(1);
    case Role::kSharedScore:
      return {1, config.hidden};
    default:
      return part_shape_of(role, config, layer);
  }
}

void replace(std::string& name, std::string_view what, int number) {
  const size_t at = name.find(what);
  if (at != std::string::npos) name.replace(at, what.size(), std::to_string(number));
}

std::string name_of(const WeightSpec& spec, const ModelConfig& config, int layer) {
  constexpr std::string_view kLayerPrefix = "model.layers.{L}.";
  std::string name(spec.name);
  const std::string_view own = config.architecture->draft.prefix;
  if (layer >= config.layers && !own.empty() && name.starts_with(kLayerPrefix)) {
    name.replace(0, kLayerPrefix.size(), own);
    replace(name, "{D}", layer - config.layers);
  }
  replace(name, "{L}", layer);
  return name;
}

Range scaled(Range range, int factor) {
  return {range.begin * factor, range.end * factor};
}

}  // namespace

std::vector<Weight> weight_table(const ModelConfig& config) {
  std::vector<Weight> table;
  const auto add = [&](const WeightSpec& spec, int layer, int expert, int part = 0) {
    const LayerTraits& traits = config.layer(std::max(layer, 0));
    const Shape shape = shape_of(spec.role, config, traits);
    std::string name = name_of(spec, config, layer);
    replace(name, "{E}", expert);
    replace(name, "{P}", part);
    table.push_back({spec.role, layer, expert, std::move(name), spec.split, shape.is_vector,
                     shape.rows, shape.columns, traits.state.heads});
  };
  const auto add_all = [&](std::span<const WeightSpec> specs, int layer) {
    for (const WeightSpec& spec : specs) {
      if (!is_stored(spec.when, config, layer)) continue;
      if (spec.role == Role::kNgramRows && config.ngrams->is_on_disk) continue;
      const bool is_of_experts = spec.name.find("{E}") != std::string_view::npos;
      const int parts = spec.split == Split::kTableRows ? config.ngrams->parts : 1;
      for (int part = 0; !is_of_experts && part < parts; ++part) add(spec, layer, -1, part);
      for (int e = 0; is_of_experts && e < config.experts.count; ++e) add(spec, layer, e);
    }
  };
  add_all(config.architecture->shared, -1);
  for (int layer = 0; layer < config.end_with_draft(config.layers); ++layer) {
    add_all(config.mixer_weights(layer), layer);
    add_all(config.kind(layer).feed_forward_weights, layer);
    add_all(config.architecture->every_layer, layer);
  }
  if (config.guesses_blocks()) {
    add_all(config.architecture->draft.first_of_block, config.layers);
    add_all(config.architecture->draft.last_of_block, config.end_with_draft(config.layers) - 1);
  } else if (config.has_draft_layer()) {
    add_all(config.architecture->draft.weights, config.layers);
  }
  return table;
}

std::vector<std::string> ngram_table_names(ModelConfig config) {
  config.ngrams->is_on_disk = false;
  std::vector<std::string> names;
  for (Weight& weight : weight_table(config)) {
    if (weight.role == Role::kNgramRows) names.push_back(std::move(weight.name));
  }
  return names;
}

bool makes_layer_inputs(Role role) {
  return role == Role::kLayerEmbedding || role == Role::kLayerProjection ||
         role == Role::kLayerProjectionNorm;
}

bool is_looked_up(Role role, bool is_also_head) {
  return role == Role::kLayerEmbedding || role == Role::kNgramRows ||
         (role == Role::kEmbedding && !is_also_head);
}

WeightPart part_of(const Weight& weight, const Cut& cut, int rank) {
  const Range all_rows{0, weight.rows}, all_columns{0, weight.columns};
  switch (weight.split) {
    case Split::kWhole:
      return {all_rows, all_columns};
    case Split::kVocabulary:
      return {cut.vocabulary(rank), all_columns};
    case Split::kTableRows:
      return {cut.table_rows(rank, weight.rows), all_columns};
    case Split::kHeads:
      return {scaled(cut.heads(rank), weight.rows / cut.head_count()), all_columns};
    case Split::kKvHeads:
      return {scaled(cut.kv_heads(rank, weight.kv_heads), weight.rows / weight.kv_heads),
              all_columns};
    case Split::kHeadColumns:
      return {all_rows, scaled(cut.heads(rank), weight.columns / cut.head_count())};
    case Split::kQueryLatent:
      return {cut.query_latent(rank), all_columns};
    case Split::kKvLatent:
      return {cut.kv_latent(rank), all_columns};
    case Split::kFfn:
      return {cut.ffn(rank, weight.rows), all_columns};
    case Split::kFfnColumns:
      return {all_rows, cut.ffn(rank, weight.columns)};
    case Split::kExpertFfn:
      return {cut.expert_ffn(rank), all_columns};
    case Split::kExpertFfnColumns:
      return {all_rows, cut.expert_ffn(rank)};
    case Split::kSharedFfn:
      return {cut.shared_ffn(rank), all_columns};
    case Split::kSharedFfnColumns:
      return {all_rows, cut.shared_ffn(rank)};
    case Split::kDeltaHeads:
    case Split::kDeltaBlocks:
      return {scaled(cut.delta_heads(rank), weight.rows / cut.delta_head_count()), all_columns};
    case Split::kDeltaColumns:
      return {all_rows, scaled(cut.delta_heads(rank), weight.columns / cut.delta_head_count())};
  }
  LOCKSTEP_CHECK(false);
  return {};
}

bool is_cut_with_feed_forward(const Weight& weight) {
  switch (weight.split) {
    case Split::kFfn:
    case Split::kFfnColumns:
    case Split::kExpertFfn:
    case Split::kExpertFfnColumns:
    case Split::kSharedFfn:
    case Split::kSharedFfnColumns:
      return true;
    case Split::kWhole:
    case Split::kVocabulary:
    case Split::kTableRows:
    case Split::kHeads:
    case Split::kKvHeads:
    case Split::kHeadColumns:
    case Split::kQueryLatent:
    case Split::kKvLatent:
    case Split::kDeltaHeads:
    case Split::kDeltaBlocks:
    case Split::kDeltaColumns:
      return false;
  }
  LOCKSTEP_CHECK(false);
  return false;
}

}  // namespace lockstep
