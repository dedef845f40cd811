#include "model/weight_table.h"

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

Shape shape_of(Role role, const ModelConfig& config) {
  switch (role) {
    case Role::kEmbedding:
    case Role::kLogits:
      return {config.vocab_size, config.hidden};
    case Role::kFinalNorm:
    case Role::kAttentionNorm:
    case Role::kFeedForwardNorm:
      return vector_of(config.hidden);
    case Role::kQueryNorm:
    case Role::kKeyNorm:
      return vector_of(config.head_dim);
    case Role::kQueryBias:
      return vector_of(config.heads * config.head_dim);
    case Role::kKeyBias:
    case Role::kValueBias:
      return vector_of(config.kv_heads * config.head_dim);
    case Role::kQuery:
      return {config.heads * config.head_dim, config.hidden};
    case Role::kKey:
    case Role::kValue:
      return {config.kv_heads * config.head_dim, config.hidden};
    case Role::kAttentionOut:
      return {config.hidden, config.heads * config.head_dim};
    case Role::kGate:
    case Role::kUp:
      return {config.ffn, config.hidden};
    case Role::kDown:
      return {config.hidden, config.ffn};
  }
  LOCKSTEP_CHECK(false);
  return {};
}

std::string name_in_layer(std::string_view pattern, int layer) {
  std::string name(pattern);
  const size_t at = name.find("{L}");
  if (at != std::string::npos) name.replace(at, 3, std::to_string(layer));
  return name;
}

Range scaled(Range range, int factor) {
  return {range.begin * factor, range.end * factor};
}

}  // namespace

std::vector<Weight> weight_table(const ModelConfig& config) {
  std::vector<Weight> table;
  const auto add = [&](std::span<const WeightSpec> specs, int layer) {
    for (const WeightSpec& spec : specs) {
      if (spec.role == Role::kLogits && config.tied_embeddings) continue;
      const Shape shape = shape_of(spec.role, config);
      table.push_back({spec.role, layer, name_in_layer(spec.name, layer), spec.split,
                       shape.is_vector, shape.rows, shape.columns});
    }
  };
  add(config.architecture->shared, -1);
  for (int layer = 0; layer < config.layers; ++layer) {
    const LayerKind& kind = config.architecture->layers[0];
    add(kind.weights, layer);
    add(kind.more_weights, layer);
  }
  return table;
}

WeightPart part_of(const Weight& weight, const Cut& cut, int rank) {
  const Range all_rows{0, weight.rows}, all_columns{0, weight.columns};
  switch (weight.split) {
    case Split::kWhole:
      return {all_rows, all_columns};
    case Split::kVocabulary:
      return {cut.vocabulary(rank), all_columns};
    case Split::kHeads:
      return {scaled(cut.heads(rank), cut.head_dim()), all_columns};
    case Split::kKvHeads:
      return {scaled(cut.kv_heads(rank), cut.head_dim()), all_columns};
    case Split::kHeadColumns:
      return {all_rows, scaled(cut.heads(rank), cut.head_dim())};
    case Split::kFfn:
      return {cut.ffn(rank), all_columns};
    case Split::kFfnColumns:
      return {all_rows, cut.ffn(rank)};
  }
  LOCKSTEP_CHECK(false);
  return {};
}

}  // namespace lockstep
