#include "planner/facts/model_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "model/load/speed_model.h"
#include "model/load/weights.h"
#include "tensor/stored_check.h"

namespace lockstep {
namespace {

// Only the sizes are wanted: one row is the smallest request that a source may have to convert.
Result<StoredMatrix> stored_matrix(const WeightSource& source, const std::string& name, int index,
                                   int rows, int columns) {
  return source.matrix(
      {.name = name, .stack_index = index, .rows = rows, .columns = columns, .row_end = 1});
}

Status add_matrix(const WeightSource& source, const ModelConfig& config, WeightFacts& facts) {
  const Weight& weight = facts.weight;
  if (weight.role == Role::kKvUp && has_split_heads(source, weight)) {
    const LatentConfig& latent = *config.latent;
    facts.stored.push_back(TRY(
        stored_matrix(source, head_part_name(weight, "embed_q"), 0, latent.kv_rank, latent.nope)));
    facts.stored.push_back(TRY(stored_matrix(source, head_part_name(weight, "unembed_out"), 0,
                                             latent.value, latent.kv_rank)));
  } else {
    facts.stored.push_back(
        TRY(stored_matrix(source, weight.name, weight.expert, weight.rows, weight.columns)));
  }
  double bytes = 0, elements = 0;
  for (const StoredMatrix& stored : facts.stored) {
    bytes += static_cast<double>(stored_bytes(stored));
    elements += static_cast<double>(stored.rows) * stored.columns;
  }
  facts.element_bytes = bytes / elements;
  return Ok{};
}

Result<WeightFacts> facts_of(const Weight& weight, const OpenedModel& model) {
  WeightFacts facts{.weight = weight, .copies = weight.expert < 0 ? 1 : model.config.experts.count};
  if (!weight.is_vector) {
    TRY(add_matrix(*model.source, model.config, facts));
    return facts;
  }
  const StoredVector vector = TRY(model.source->vector(weight.name, weight.expert, weight.rows));
  facts.element_bytes = dtype_bytes(vector.dtype);
  return facts;
}

bool is_stored_alike(const StoredMatrix& a, const StoredMatrix& b) {
  return a.format == b.format && a.bits == b.bits && a.group == b.group &&
         a.row_group == b.row_group && a.scale_type == b.scale_type && a.row_bytes == b.row_bytes &&
         a.codes.size() == b.codes.size() && a.gguf_type == b.gguf_type &&
         (a.factor == 1) == (b.factor == 1) && a.row_map.empty() == b.row_map.empty() &&
         a.biases.size() == b.biases.size() && a.zeros.size() == b.zeros.size() &&
         a.groups.size() == b.groups.size();
}

bool is_alike(const WeightFacts& a, const WeightFacts& b) {
  return a.weight.role == b.weight.role && a.copies == b.copies &&
         a.element_bytes == b.element_bytes &&
         std::equal(a.stored.begin(), a.stored.end(), b.stored.begin(), b.stored.end(),
                    is_stored_alike);
}

void add_layer(std::vector<WeightFacts> weights, ModelFacts& facts) {
  const auto known =
      std::find_if(facts.classes.begin(), facts.classes.end(), [&](const LayerClass& other) {
        return std::equal(weights.begin(), weights.end(), other.weights.begin(),
                          other.weights.end(), is_alike);
      });
  facts.class_of.push_back(static_cast<size_t>(known - facts.classes.begin()));
  if (known != facts.classes.end()) {
    ++known->layers;
  } else {
    facts.classes.push_back({std::move(weights), 1});
  }
}

Status add_weights(const OpenedModel& model, ModelFacts& facts) {
  std::vector<WeightFacts> layer;
  int index = 0;
  for (const Weight& weight : weight_table(model.config)) {
    if (weight.expert > 0) continue;  // all experts of a layer are alike
    if (weight.layer > index) {
      add_layer(std::move(layer), facts);
      layer.clear();
      index = weight.layer;
    }
    (weight.layer < 0 ? facts.shared : layer).push_back(TRY(facts_of(weight, model)));
  }
  add_layer(std::move(layer), facts);
  return Ok{};
}

}  // namespace

Result<ModelFacts> model_facts(const OpenedModel& model) {
  ModelFacts facts{.config = model.config, .source = model.source};
  TRY(add_weights(model, facts));
  facts.token_bytes = TRY(token_bytes_of(*model.source, model.config));
  facts.alignment = TRY(alignment_of(*model.source, model.config));
  facts.latent_layer_bytes = TRY(latent_layer_bytes(*model.source, model.config));
  facts.layer_kernels = token_costs(model.config, {}).kernels;
  return facts;
}

}  // namespace lockstep
