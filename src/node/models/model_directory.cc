#include "node/models/model_directory.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "base/letters.h"
#include "cluster/state/model_names.h"

namespace lockstep {
namespace {

std::string last_component(std::string_view name) {
  return std::string(name.substr(name.rfind('/') + 1));  // npos + 1 is 0
}

std::vector<std::string> names_of(const ModelServices& models) {
  std::vector<std::string> names;
  for (const auto& model : models) names.push_back(model->status().name);
  return names;
}

std::string quoted(const std::vector<std::string>& names, std::string_view between) {
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format("{}\"{}\"", text.empty() ? "" : between, name);
  }
  return text.empty() ? "none" : text;
}

// Names similar to it as a whole, or to its last component.
std::vector<std::string> suggestions(std::string_view name, const std::vector<std::string>& known) {
  std::vector<std::string> near = names_like(name, known);
  for (const std::string& candidate : known) {
    const bool is_listed = std::find(near.begin(), near.end(), candidate) != near.end();
    const bool is_near = !names_like(last_component(name), {last_component(candidate)}).empty();
    if (!is_listed && is_near && near.size() < kSuggestionsMax) near.push_back(candidate);
  }
  return near;
}

}  // namespace

std::shared_ptr<ModelService> model_named(const ModelServices& models, std::string_view name) {
  const std::string wanted = lower_text(name);
  std::shared_ptr<ModelService> same_letters;
  ModelServices same_end;
  for (const auto& model : models) {
    const std::string own = model->status().name;
    if (own == name) return model;
    if (lower_text(own) == wanted) same_letters = model;
    if (lower_text(last_component(own)) == last_component(wanted)) same_end.push_back(model);
  }
  if (same_letters != nullptr) return same_letters;
  return same_end.size() == 1 ? same_end.front() : nullptr;
}

Error no_name_given(const ModelServices& models) {
  return {ErrorCode::kInvalidArgument,
          "\"model\" is required; loaded: " + quoted(names_of(models), ", ")};
}

Error no_model_named(std::string_view name, const ModelServices& models) {
  const std::vector<std::string> known = names_of(models);
  const std::vector<std::string> near = suggestions(name, known);
  const std::string hint = near.empty() ? "loaded: " + quoted(known, ", ")
                                        : "did you mean " + quoted(near, " or ") + "?";
  return {ErrorCode::kNotFound, fmt::format("the model \"{}\" is not loaded; {}", name, hint)};
}

Result<std::shared_ptr<ModelService>> FixedModels::find(std::string_view name) {
  if (name.empty()) {
    if (models_.size() == 1) return models_.front();
    return no_name_given(models_);
  }
  auto found = model_named(models_, name);
  if (found == nullptr) return no_model_named(name, models_);
  return found;
}

ModelServices JoinedModels::models() const {
  ModelServices all = first_->models();
  const std::vector<std::string> names = names_of(all);
  for (auto& model : second_->models()) {
    const std::string name = model->status().name;
    if (std::find(names.begin(), names.end(), name) == names.end()) all.push_back(std::move(model));
  }
  return all;
}

Result<std::shared_ptr<ModelService>> JoinedModels::find(std::string_view name) {
  const ModelServices first = first_->models();
  if (name.empty()) {
    const ModelServices all = models();
    if (all.size() != 1) return no_name_given(all);
    return (first.empty() ? second_ : first_)->find(name);
  }
  // An exact name in either directory wins over a similar one.
  const auto alike = model_named(first, name);
  if (alike != nullptr && alike->status().name == name) return first_->find(name);
  auto found = second_->find(name);
  if (found.ok() || found.error().code != ErrorCode::kNotFound) return found;
  if (alike != nullptr) return first_->find(name);
  return first.empty() ? found
                       : Result<std::shared_ptr<ModelService>>(no_model_named(name, models()));
}

// A model of the first directory is found without the second one's files.
void JoinedModels::await_files(std::string_view name, std::chrono::milliseconds patience) const {
  const auto own = model_named(first_->models(), name);
  if (own == nullptr || own->status().name != name) second_->await_files(name, patience);
}

// For a model's exact name.
ModelDirectory& JoinedModels::directory_of(std::string_view name) const {
  for (const auto& model : first_->models()) {
    if (model->status().name == name) return *first_;
  }
  return *second_;
}

bool JoinedModels::is_on_demand(std::string_view name) const {
  return directory_of(name).is_on_demand(name);
}

void JoinedModels::keep(std::string_view name, std::chrono::milliseconds time) {
  directory_of(name).keep(name, time);
}

}  // namespace lockstep
