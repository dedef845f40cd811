#include "planner/facts/model_facts.h"

#include <algorithm>
#include <utility>

#include "model/load/speed_model.h"
#include "model/load/stored_forms.h"

namespace lockstep {
namespace {

bool is_stored_alike(const StoredMatrix& a, const StoredMatrix& b) {
  return a.format == b.format && a.bits == b.bits && a.group == b.group &&
         a.row_group == b.row_group && a.scale_type == b.scale_type && a.row_bytes == b.row_bytes &&
         a.codes.size() == b.codes.size() && a.gguf_type == b.gguf_type &&
         (a.factor == 1) == (b.factor == 1) && a.row_map.empty() == b.row_map.empty() &&
         a.column_group == b.column_group && a.biases.size() == b.biases.size() &&
         a.zeros.size() == b.zeros.size() && a.groups.size() == b.groups.size();
}

bool is_alike(const StoredWeight& a, const StoredWeight& b) {
  return a.weight.role == b.weight.role && a.copies == b.copies &&
         a.element_bytes == b.element_bytes &&
         std::equal(a.matrices.begin(), a.matrices.end(), b.matrices.begin(), b.matrices.end(),
                    [](const auto& of_a, const auto& of_b) {
                      return is_stored_alike(of_a.second, of_b.second);
                    });
}

void add_layer(std::vector<StoredWeight> weights, ModelFacts& facts) {
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
  const double one = 1;
  const Cut whole = TRY(Cut::make(model.config, {&one, 1}, {facts.alignment, false}));
  std::vector<StoredWeight> layer;
  int index = 0;
  for (const Weight& weight : weight_table(model.config)) {
    if (weight.expert > 0) continue;  // all experts of a layer are alike
    if (weight.layer > index) {
      add_layer(std::move(layer), facts);
      layer.clear();
      index = weight.layer;
    }
    StoredWeight stored = TRY(stored_weight(*model.source, model.config, whole, weight));
    (weight.layer < 0 ? facts.shared : layer).push_back(std::move(stored));
  }
  add_layer(std::move(layer), facts);
  return Ok{};
}

}  // namespace

Result<ModelFacts> model_facts(const OpenedModel& model) {
  ModelFacts facts{.config = model.config, .source = model.source};
  facts.alignment = TRY(alignment_of(*model.source, model.config));
  TRY(add_weights(model, facts));
  facts.token_bytes = TRY(token_bytes_of(*model.source, model.config));
  facts.latent_layer_bytes = TRY(latent_layer_bytes(*model.source, model.config));
  facts.layer_kernels = token_costs(model.config, {}).kernels;
  return facts;
}

}  // namespace lockstep
