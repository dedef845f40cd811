#include "model/load/model_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "gguf/gguf.h"
#include "kernels/kernels.h"
#include "model/load/sequence_state.h"
#include "model/load/stored_forms.h"
#include "model/load/weight_table.h"
#include "tensor/stored_check.h"

namespace lockstep {
namespace {

WeightClass class_of(const Weight& weight) {
  if (weight.is_vector) return WeightClass::kNorms;
  if (is_of_ngrams(weight.role)) return WeightClass::kNgrams;
  if (is_of_mixed_streams(weight.role)) return WeightClass::kStreams;
  switch (weight.role) {
    case Role::kEmbedding:
    case Role::kLayerEmbedding:
      return WeightClass::kEmbedding;
    case Role::kLogits:
      return WeightClass::kHead;
    case Role::kRouter:
    case Role::kSharedScore:
      return WeightClass::kRouter;
    case Role::kExpertGate:
    case Role::kExpertUp:
    case Role::kExpertDown:
      return WeightClass::kExperts;
    case Role::kSharedGate:
    case Role::kSharedUp:
    case Role::kSharedDown:
      return WeightClass::kSharedExperts;
    case Role::kGate:
    case Role::kUp:
    case Role::kDown:
      return WeightClass::kFeedForward;
    case Role::kLayerProjection:
    case Role::kLayerInputGate:
    case Role::kLayerInputOut:
      return WeightClass::kLayerInputs;
    case Role::kIndexQuery:
    case Role::kIndexKey:
    case Role::kIndexWeights:
    case Role::kIndexPoolGate:
    case Role::kIndexEntryValues:
    case Role::kIndexEntryGates:
    case Role::kIndexQueryKey:
      return WeightClass::kIndex;
    case Role::kQueryDown:
    case Role::kSharedKey:
    case Role::kEntryValues:
    case Role::kEntryGates:
      return weight.split == Split::kWhole ? WeightClass::kWholeAttention : WeightClass::kAttention;
    case Role::kAttentionStreams:
    case Role::kFeedForwardStreams:
    case Role::kLastStreams:
      return WeightClass::kStreams;
    default:
      return WeightClass::kAttention;
  }
}

struct Stored {
  uint64_t bytes = 0;
  std::string format;
};

// MLX splits the matrix in two and stores each as a stack of all heads:
// https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/deepseek_v3.py
Result<Stored> stored_heads(const Weight& weight, const ModelConfig& config,
                            const WeightSource& source) {
  const LatentConfig& latent = config.latent;
  const std::string down = head_part_name(weight, "embed_q");
  const std::string up = head_part_name(weight, "unembed_out");
  Stored stored;
  for (int head = 0; head < config.heads; ++head) {
    const StoredMatrix key = TRY(source.matrix(
        {.name = down, .stack_index = head, .rows = latent.kv_rank, .columns = latent.nope}));
    const StoredMatrix value = TRY(source.matrix(
        {.name = up, .stack_index = head, .rows = latent.value, .columns = latent.kv_rank}));
    stored.bytes += stored_bytes(key) + stored_bytes(value);
    stored.format = stored_format_name(key);
  }
  return stored;
}

Result<Stored> stored_of(const Weight& weight, const ModelConfig& config,
                         const WeightSource& source) {
  if (weight.is_vector) {
    const StoredVector vector = TRY(source.vector(weight.name, weight.expert, weight.rows));
    return Stored{vector.bytes.size(), std::string(dtype_name(vector.dtype))};
  }
  if (weight.role == Role::kKvUp && has_split_heads(source, weight)) {
    return stored_heads(weight, config, source);
  }
  const StoredMatrix matrix = TRY(stored_form(source, weight));
  return Stored{stored_bytes(matrix), stored_format_name(matrix)};
}

// A token uses only the chosen experts.
WeightCount count_of(const Weight& weight, const ModelConfig& config, uint64_t bytes) {
  const uint64_t parameters =
      static_cast<uint64_t>(weight.rows) * static_cast<uint64_t>(weight.columns);
  // All experts have the same size, so the first ones stand for the chosen ones.
  const bool is_met =
      !is_looked_up(weight.role, config.tied_embeddings) && weight.expert < config.experts.chosen;
  return {.parameters = parameters,
          .token_parameters = is_met ? parameters : 0,
          .bytes = bytes,
          .token_bytes = is_met ? bytes : 0};
}

std::string float_format_name(DType scale_type, std::string_view name, std::string_view suffix) {
  return fmt::format("{}, {} scales {}", name, dtype_name(scale_type), suffix);
}

std::string fp4_name(const StoredMatrix& matrix) {
  if (matrix.scale_type == DType::kF8E8M0 && matrix.group == 32) return "MXFP4";
  if (matrix.scale_type == DType::kF8E4M3 && matrix.group == 16) return "NVFP4";
  return float_format_name(matrix.scale_type, "FP4 E2M1", fmt::format("by {}", matrix.group));
}

std::string fp8_name(const StoredMatrix& matrix) {
  if (matrix.scale_type == DType::kF8E8M0 && matrix.group == 32) return "MXFP8";
  if (matrix.group == 0 && matrix.row_group == 0) return "FP8 E4M3, one scale";
  if (matrix.group == 0) return "FP8 E4M3, a scale for each row";
  return fmt::format("FP8 E4M3, scales by {} x {}", matrix.row_group, matrix.group);
}

}  // namespace

bool is_whole(WeightClass weight_class) {
  return weight_class == WeightClass::kRouter || weight_class == WeightClass::kNorms ||
         weight_class == WeightClass::kLayerInputs || weight_class == WeightClass::kIndex ||
         weight_class == WeightClass::kStreams || weight_class == WeightClass::kWholeAttention ||
         weight_class == WeightClass::kNgrams;
}

std::string_view weight_class_name(WeightClass weight_class) {
  constexpr std::string_view kNames[] = {"embedding",      "LM head", "attention", "feed-forward",
                                         "shared experts", "experts", "router",    "norms, biases",
                                         "layer inputs",   "index",   "streams",   "shared keys",
                                         "n-grams"};
  return kNames[static_cast<size_t>(weight_class)];
}

void WeightCount::add(const WeightCount& other) {
  parameters += other.parameters;
  token_parameters += other.token_parameters;
  bytes += other.bytes;
  token_bytes += other.token_bytes;
}

std::string stored_format_name(const StoredMatrix& matrix) {
  switch (matrix.format) {
    case StoredFormat::kPlain:
      return std::string(dtype_name(matrix.scale_type));
    case StoredFormat::kAffine:
      return fmt::format("MLX {} bit, group {}", matrix.bits, matrix.group);
    case StoredFormat::kFp8:
      return fp8_name(matrix);
    case StoredFormat::kFp4:
      return fp4_name(matrix);
    case StoredFormat::kPackedInt:
      return fmt::format("INT{}, group {}", matrix.bits, matrix.group);
    case StoredFormat::kGptq:
      return fmt::format("GPTQ {} bit, group {}", matrix.bits, matrix.group);
    case StoredFormat::kAwq:
      return fmt::format("AWQ {} bit, group {}", matrix.bits, matrix.group);
    case StoredFormat::kGguf:
      return gguf_type_name(matrix.gguf_type);
  }
  LOCKSTEP_CHECK(false);
  return {};
}

Result<ModelSummary> summarise(const ModelConfig& config, const WeightSource* source) {
  ModelSummary summary;
  summary.layers.resize(config.traits.size());
  std::array<ClassSummary, kWeightClassCount> classes{};
  for (const Weight& weight : weight_table(config)) {
    const Stored stored = source ? TRY(stored_of(weight, config, *source)) : Stored{};
    const WeightCount count = count_of(weight, config, stored.bytes);
    ClassSummary& entry = classes[static_cast<size_t>(class_of(weight))];
    entry.count.add(count);
    std::vector<std::string>& formats = entry.formats;
    const bool is_new = std::find(formats.begin(), formats.end(), stored.format) == formats.end();
    if (is_new && !stored.format.empty()) formats.push_back(stored.format);
    if (weight.layer >= 0) summary.layers[static_cast<size_t>(weight.layer)].add(count);
    summary.total.add(count);
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    classes[i].weight_class = static_cast<WeightClass>(i);
    if (classes[i].count.parameters > 0) summary.classes.push_back(std::move(classes[i]));
  }
  return summary;
}

uint64_t recurrent_bytes(const ModelConfig& config) {
  if (!config.delta) return 0;
  const auto layers = static_cast<uint64_t>(config.recurrent_layers(0, config.layers));
  const auto channels = static_cast<size_t>(config.stream_columns());
  const size_t ngrams = config.ngrams ? config.ngrams->state_elements(channels) : 0;
  return (layers * config.delta->state_elements(config.delta->key_heads) + ngrams) * sizeof(float);
}

uint64_t state_bytes(const ModelConfig& config, KvKind kv, int tokens) {
  const int pages = pages_for(tokens);
  return state_bytes_of_pages(config, kv, pages, std::min(pages, window_span(config.reach())));
}

uint64_t state_bytes_of_pages(const ModelConfig& config, KvKind kv, int pages, int window_pages) {
  uint64_t of_page = 0, of_window_page = 0;
  for (const LayerTraits& layer : config.traits) {
    if (!layer.has_state()) continue;
    const uint64_t windows = layer.state.window_bytes(kv, layer.state.heads);
    of_page += layer.state.bytes(kv, layer.state.heads) - windows;
    of_window_page += windows;
  }
  return of_page * static_cast<uint64_t>(pages) +
         of_window_page * static_cast<uint64_t>(window_pages);
}

}  // namespace lockstep
