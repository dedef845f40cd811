#include "model/load/shape_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "model/load/weight_table.h"
#include "model/shapes/known_shapes.h"

namespace lockstep {
namespace {

constexpr std::string_view kPrefix = "shape:";

std::string known_names() {
  std::string names;
  for (const KnownShape& shape : known_shapes()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", shape.name);
  }
  return names;
}

}  // namespace

bool is_shape_model(std::string_view text) {
  return text.starts_with(kPrefix);
}

std::string shape_model_text(const ShapeModel& model) {
  return fmt::format("{}{}?format={}&layers={}", kPrefix, model.shape, model.format, model.layers);
}

Result<ShapeModel> parse_shape_model(std::string_view text) {
  const Error bad{ErrorCode::kInvalidArgument,
                  fmt::format("{} is not a shape: write shape:NAME?format=bf16&layers=0", text)};
  if (!is_shape_model(text)) return bad;
  text.remove_prefix(kPrefix.size());
  const size_t mark = text.rfind('?');
  ShapeModel model{.shape = std::string(text.substr(0, mark))};
  if (model.shape.empty()) return bad;
  std::string_view rest = mark == std::string_view::npos ? "" : text.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view field = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) return bad;
    const std::string_view key = field.substr(0, equals), value = field.substr(equals + 1);
    if (key == "format") {
      model.format = value;
    } else if (key == "layers") {
      const auto end = value.data() + value.size();
      const auto parsed = std::from_chars(value.data(), end, model.layers);
      if (parsed.ec != std::errc() || parsed.ptr != end || model.layers < 0) return bad;
    } else {
      return bad;
    }
  }
  return model;
}

Result<ModelConfig> read_shape_config(const std::string& shape) {
  if (const KnownShape* known = find_known_shape(shape)) return parse_config(known->config);
  std::error_code ignored;
  if (std::filesystem::is_directory(shape, ignored)) return read_config(shape);
  if (std::filesystem::exists(shape, ignored)) return read_config_file(shape);
  return Error{
      ErrorCode::kNotFound,
      fmt::format("there is no model folder or config.json {} and no published model of that "
                  "name; known are: {}",
                  shape, known_names())};
}

bool common_layers_have_experts(const ModelConfig& config) {
  const auto sparse = std::count_if(config.traits.begin(), config.traits.end(),
                                    [](const LayerTraits& layer) { return layer.has_experts; });
  return sparse * 2 > config.layers;
}

// One layer alone has them.
void leave_out_ngrams(LayerTraits& layer) {
  layer.adds_ngrams = false;
  for (size_t role = 0; role < size_t{kRoleCount}; ++role) {
    if (is_of_ngrams(static_cast<Role>(role))) layer.weights.reset(role);
  }
}

Result<ModelConfig> with_layers(ModelConfig config, int layers) {
  const bool is_sparse = common_layers_have_experts(config);
  std::vector<LayerTraits> common;
  for (const LayerTraits& layer : config.traits) {
    const bool needs_others = !layer.has_state() || layer.shares_choice;
    if (layer.has_experts == is_sparse && !needs_others) common.push_back(layer);
  }
  // The last one has attention, as every model needs.
  while (!common.empty() && common.back().is_recurrent()) common.pop_back();
  if (layers < 1 || static_cast<size_t>(layers) > common.size()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} layers were requested, 1 to {} of one kind are available", layers,
                             common.size())};
  }
  config.layers = layers;
  config.traits.assign(common.end() - layers, common.end());
  for (LayerTraits& layer : config.traits) leave_out_ngrams(layer);
  config.ngrams.reset();
  return config;
}

std::vector<RandomTensor> random_tensors(const ModelConfig& config) {
  std::vector<RandomTensor> tensors;
  const int numbers = std::min(config.experts.count, 256);
  for (Weight& weight : weight_table(config)) {
    tensors.push_back({.name = std::move(weight.name),
                       .rows = weight.rows,
                       .columns = weight.columns,
                       .is_vector = weight.is_vector,
                       .is_never_quantised = weight.role == Role::kRouter,
                       .numbers = weight.role == Role::kRouterTable ? numbers : 0});
  }
  return tensors;
}

}  // namespace lockstep
