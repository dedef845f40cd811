// ModelFacts: all that the planner knows of a model, collected once from its weight table and its
// checkpoint (or from random weights of its shape), so that planning reads no file. Layers that are
// stored alike are one class. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "model/open_model.h"
#include "model/stages.h"
#include "model/weight_table.h"

namespace lockstep {

// A weight of the table, or the first of all experts that a layer has of it.
struct WeightFacts {
  Weight weight;
  int copies = 1;            // all experts
  double element_bytes = 0;  // in the checkpoint, scales included
  // How it is stored: one matrix, or of split heads (model/weights.h) the key's part and the
  // value's of the first head.
  std::vector<StoredMatrix> stored;
};

struct LayerClass {
  std::vector<WeightFacts> weights;
  int layers = 0;
};

struct ModelFacts {
  ModelConfig config;
  std::shared_ptr<const WeightSource> source;  // owns what `stored` points to
  std::vector<WeightFacts> shared;             // embedding, final norm, LM head
  std::vector<LayerClass> classes;
  std::vector<size_t> class_of;  // (layers)
  TokenBytes token_bytes;        // by which layers are dealt to stages
  CutAlignment alignment;
  uint64_t latent_layer_bytes = 0;
  double layer_kernels = 0;  // operations of all layers
};

Result<ModelFacts> model_facts(const OpenedModel& model);

}  // namespace lockstep
