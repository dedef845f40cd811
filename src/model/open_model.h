// What a model is, wherever it comes from: a folder with a checkpoint, a .gguf file, or a shape
// with random weights (shape_model.h). Ranks, `show` and `bench` open models here.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/config.h"
#include "weights/weight_source.h"

namespace lockstep {

struct OpenedModel {
  ModelConfig config;
  std::shared_ptr<const WeightSource> source;
};

Result<OpenedModel> open_model(const std::string& model,
                               PartialFiles partial = PartialFiles::kRefused);
// The config alone, without looking at the weights.
Result<ModelConfig> read_model_config(const std::string& model);

}  // namespace lockstep
