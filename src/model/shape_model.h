// A model of random weights by the name of its shape. Wherever a model is asked for, the text
// "shape:NAME?format=mlx4&layers=2" stands for one, so that worker processes open it by themselves.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/config.h"
#include "weights/random_source.h"

namespace lockstep {

struct ShapeModel {
  std::string shape;  // a known name, a config.json or a folder with one
  std::string format = "bf16";
  int layers = 0;  // 0: all; else so many of the commonest kind
};

bool is_shape_model(std::string_view text);
std::string shape_model_text(const ShapeModel& model);
// kInvalidArgument for what is no shape model.
Result<ShapeModel> parse_shape_model(std::string_view text);

// The config of the whole model. kNotFound names the shapes that are known.
Result<ModelConfig> read_shape_config(const std::string& shape);
// Whether the commonest kind of layer has experts: those are the ones that are measured.
bool common_layers_have_experts(const ModelConfig& config);
// The same model with `layers` of its commonest layers, the last ones, and no others.
// kInvalidArgument where there are fewer.
Result<ModelConfig> with_layers(ModelConfig config, int layers);
// The tensors that random weights of this model need.
std::vector<RandomTensor> random_tensors(const ModelConfig& config);

}  // namespace lockstep
