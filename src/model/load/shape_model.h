// A model with random weights, named by its shape. The text "shape:NAME?format=mlx4&layers=2" can
// replace a model anywhere, so that worker processes can open it themselves.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/config/config.h"
#include "weights/random/random_source.h"

namespace lockstep {

struct ShapeModel {
  std::string shape;  // a known name, a config.json or a folder with one
  std::string format = "bf16";
  int layers = 0;  // 0: all; else this many of the most common kind
};

bool is_shape_model(std::string_view text);
std::string shape_model_text(const ShapeModel& model);
// kInvalidArgument if it is not a shape model.
Result<ShapeModel> parse_shape_model(std::string_view text);

// The config of the whole model. kNotFound lists the known shapes.
Result<ModelConfig> read_shape_config(const std::string& shape);
// Whether the most common kind of layer has experts: those are the layers that are measured.
bool common_layers_have_experts(const ModelConfig& config);
// The same model with only the last `layers` of its most common layers, without those that use an
// earlier one's keys and values. kInvalidArgument if there are fewer.
Result<ModelConfig> with_layers(ModelConfig config, int layers);
// The tensors that random weights of this model need.
std::vector<RandomTensor> random_tensors(const ModelConfig& config);

}  // namespace lockstep
