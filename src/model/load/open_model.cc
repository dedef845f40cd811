#include "model/load/open_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "model/config/config_fields.h"
#include "model/load/shape_model.h"
#include "model/load/stored_forms.h"
#include "model/load/weight_table.h"
#include "weights/source/draft_source.h"

namespace lockstep {
namespace {

std::string layer_prefix(int layer) {
  return fmt::format("model.layers.{}.", layer);
}

// Whether the files have a weight of `layer` that the model's last layer has too.
bool has_layer(const WeightSource& source, const std::vector<Weight>& table, int last, int layer) {
  const std::string prefix = layer_prefix(last);
  return std::any_of(table.begin(), table.end(), [&](const Weight& weight) {
    if (weight.layer != last || weight.expert > 0 || !weight.name.starts_with(prefix)) return false;
    const std::string name = layer_prefix(layer) + weight.name.substr(prefix.size());
    return source.has(name, weight.expert);
  });
}

// Layers that predict further tokens have a projection of two hidden states, even if the config
// does not count them (DeepSeek V3, https://arxiv.org/abs/2412.19437, section 2.2).
bool is_predicting(const WeightSource& source, int layer) {
  return source.has(layer_prefix(layer) + "eh_proj.weight");
}

// A config with fewer layers than the files belongs to another model, and would still compute.
Status check_layers(const ModelConfig& config, const WeightSource& source) {
  const std::vector<Weight> table = weight_table(config);
  const int last = config.layers - 1;
  const bool are_layers = config.architecture->draft.prefix.empty();
  int next = config.layers + (are_layers ? config.predicting_layers : 0);
  while (next < kLayersMax && is_predicting(source, next)) ++next;
  if (!has_layer(source, table, last, next)) return Ok{};
  int end = next + 1;
  while (end < kLayersMax && has_layer(source, table, last, end)) ++end;
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("the config says {} layer{}, but the files hold {} (up to {}*): they do "
                  "not belong together",
                  config.layers, config.layers == 1 ? "" : "s", end, layer_prefix(end - 1))};
}

bool divides(const CutAlignment& part, const CutAlignment& whole) {
  return whole.ffn % part.ffn == 0 && whole.experts % part.experts == 0;
}

Status check_readable(const WeightSource& source, const Weight& weight) {
  if (weight.is_vector) {
    (void)TRY(source.vector(weight.name, weight.expert, weight.rows));
  } else if (weight.role != Role::kKvUp || !has_split_heads(source, weight)) {
    (void)TRY(stored_form(source, weight));
  }
  return Ok{};
}

// `table`: of the model with its draft layer.
bool has_draft_input(const WeightSource& source, const std::vector<Weight>& table) {
  return std::any_of(table.begin(), table.end(), [&](const Weight& weight) {
    const bool is_input = weight.role == Role::kDraftInput || weight.role == Role::kDraftTokenInput;
    return is_input && source.has(weight.name);
  });
}

// The beginning of the names of all weights of the draft layer.
std::string draft_names_of(const ModelConfig& config) {
  const std::string_view prefix = config.architecture->draft.prefix;
  return prefix.empty() ? layer_prefix(config.layers)
                        : std::string(prefix.substr(0, prefix.find('.') + 1));
}

// `table`: of the model with its draft layer.
Status check_draft_layer(const WeightSource& source, const ModelConfig& config,
                         const std::vector<Weight>& table, int stages) {
  if (stages > 1 && config.guesses_blocks()) {
    return Error{ErrorCode::kUnsupported,
                 "its guesses need hidden states of layers in several stages of a pipeline"};
  }
  for (const Weight& weight : table) {
    if (weight.layer >= config.layers) TRY(check_readable(source, weight));
  }
  const CutAlignment alignment = TRY(alignment_of(source, config));
  if (divides(TRY(draft_alignment_of(source, config)), alignment)) return Ok{};
  return Error{ErrorCode::kUnsupported, "it is stored in larger groups than the other layers"};
}

// With the draft layer, wherever it is; null if there is none. `table`: of the model with it.
Result<std::shared_ptr<const WeightSource>> draft_source_of(const OpenedModel& model,
                                                            const std::vector<Weight>& table) {
  if (!model.prefers_draft_files && has_draft_input(*model.source, table)) return model.source;
  if (model.draft_files.empty()) return std::shared_ptr<const WeightSource>();
  auto source = TRY(with_draft_layer(model.source, model.folder, model.draft_files,
                                     draft_names_of(model.config), model.partial));
  if (has_draft_input(*source, table)) return source;
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} has no draft layer of {}", model.draft_files.string(),
                           model.config.architecture->name)};
}

// Leaves a model without a draft layer as it is. An error says why the one that it has cannot be
// used.
Status try_draft_layer(OpenedModel& model, int stages) {
  ModelConfig config = model.config;
  add_draft_layer(config);
  const std::vector<Weight> table = weight_table(config);
  auto source = TRY(draft_source_of(model, table));
  if (!source) return Ok{};
  TRY(check_draft_layer(*source, config, table, stages));
  model.config = std::move(config);
  model.source = std::move(source);
  return Ok{};
}

Result<OpenedModel> open_shape(const std::string& model, ModelConfig config, bool has_draft_layer) {
  const ShapeModel shape = TRY(parse_shape_model(model));
  ModelConfig stored = config;
  const bool knows_draft = !config.architecture->draft.weights.empty();
  if (has_draft_layer && knows_draft && config.predicting_layers > 0) add_draft_layer(stored);
  auto source = TRY(open_random_source(shape.format, random_tensors(stored)));
  return OpenedModel{std::move(config), std::move(source)};
}

}  // namespace

void use_draft_layer(OpenedModel& model, int stages) {
  const bool has_none = model.config.architecture->draft.weights.empty();
  if (has_none || model.config.has_draft_layer()) return;
  model.draft_problem = model.config.draft_problem;
  if (!model.draft_problem.empty()) return;
  const Status used = try_draft_layer(model, stages);
  if (!used.ok()) model.draft_problem = used.error().message;
}

Status leave_ngrams_on_disk(ModelConfig& config) {
  if (!config.ngrams) {
    return Error{ErrorCode::kInvalidArgument,
                 "this model has no table of n-grams; leave out --ngrams-on-disk"};
  }
  config.ngrams->is_on_disk = true;
  return Ok{};
}

Result<ModelConfig> read_model_config(const std::string& model) {
  if (!is_shape_model(model)) return read_config(model);
  const ShapeModel shape = TRY(parse_shape_model(model));
  ModelConfig config = TRY(read_shape_config(shape.shape));
  return shape.layers == 0 ? Result<ModelConfig>(std::move(config))
                           : with_layers(std::move(config), shape.layers);
}

Result<OpenedModel> open_model(const std::string& model, PartialFiles partial) {
  ModelConfig config = TRY(read_model_config(model));
  if (is_shape_model(model)) return open_shape(model, std::move(config), false);
  auto source = TRY(open_weight_source(model, partial));
  TRY(check_layers(config, *source));
  return OpenedModel{.config = std::move(config),
                     .source = std::move(source),
                     .folder = model,
                     .draft_files = draft_layer_in(model),
                     .partial = partial};
}

Result<OpenedModel> open_with_draft_layer(const std::string& model, PartialFiles partial,
                                          int stages) {
  OpenedModel opened =
      TRY(is_shape_model(model) ? open_shape(model, TRY(read_model_config(model)), true)
                                : open_model(model, partial));
  use_draft_layer(opened, stages);
  return opened;
}

Result<OpenedModel> open_for_drafts(const std::string& model, bool draft_layer,
                                    const std::filesystem::path& draft_model, PartialFiles partial,
                                    int stages) {
  if (!is_draft_layer(draft_model)) {
    return draft_layer && draft_model.empty() ? open_with_draft_layer(model, partial, stages)
                                              : open_model(model, partial);
  }
  OpenedModel opened = TRY(open_model(model, partial));
  opened.draft_files = draft_model;
  opened.prefers_draft_files = true;
  use_draft_layer(opened, stages);
  if (opened.config.has_draft_layer()) return opened;
  const std::string problem =
      opened.draft_problem.empty()
          ? fmt::format("lockstep knows no draft layer of {}", opened.config.architecture->name)
          : opened.draft_problem;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the draft layer {} cannot be used: {}", draft_model.string(), problem)};
}

}  // namespace lockstep
