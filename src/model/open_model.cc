#include "model/open_model.h"

#include <utility>

#include "model/shape_model.h"

namespace lockstep {

Result<ModelConfig> read_model_config(const std::string& model) {
  if (!is_shape_model(model)) return read_config(model);
  const ShapeModel shape = TRY(parse_shape_model(model));
  ModelConfig config = TRY(read_shape_config(shape.shape));
  return shape.layers == 0 ? Result<ModelConfig>(std::move(config))
                           : with_layers(std::move(config), shape.layers);
}

Result<OpenedModel> open_model(const std::string& model) {
  ModelConfig config = TRY(read_model_config(model));
  if (!is_shape_model(model)) {
    return OpenedModel{std::move(config), TRY(open_weight_source(model))};
  }
  const ShapeModel shape = TRY(parse_shape_model(model));
  auto source = TRY(open_random_source(shape.format, random_tensors(config)));
  return OpenedModel{std::move(config), std::move(source)};
}

}  // namespace lockstep
