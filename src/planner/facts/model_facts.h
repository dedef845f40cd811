// ModelFacts: what the planner knows of a model, collected once from its weight table and its
// checkpoint (or from random weights of its shape), so that planning reads no files. Layers stored
// alike form one class. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "model/load/open_model.h"
#include "model/load/stages.h"
#include "model/load/weight_counter.h"

namespace lockstep {

struct LayerClass {
  std::vector<StoredWeight> weights;
  int layers = 0;
};

struct ModelFacts {
  ModelConfig config;
  std::shared_ptr<const WeightSource> source;  // owns what stored weights point to
  std::vector<StoredWeight> shared;            // embedding, final norm, LM head
  std::vector<LayerClass> classes;
  std::vector<size_t> class_of;  // (layers), and the draft layer's if it is used
  TokenBytes token_bytes;        // used to divide layers among stages
  CutAlignment alignment;
  uint64_t latent_layer_bytes = 0;
  double layer_kernels = 0;  // operations in all layers
};

Result<ModelFacts> model_facts(const OpenedModel& model);

}  // namespace lockstep
