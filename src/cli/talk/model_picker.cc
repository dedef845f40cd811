#include "cli/talk/model_picker.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/bytes_text.h"
#include "cli/client/cluster_text.h"
#include "cli/editor/line_editor.h"
#include "cli/text/output.h"
#include "cli/text/terminal_text.h"

namespace lockstep {
namespace {

void add_disk_models(const Json& disk, std::vector<PickableModel>& models) {
  for (const Json& node : list_in(disk, "nodes")) {
    for (const Json& model : list_in(node, "models")) {
      const std::string name = harmless_line(text_in(model, "name"));
      const bool is_known = std::any_of(models.begin(), models.end(),
                                        [&](const PickableModel& one) { return one.name == name; });
      if (is_known || !flag_in(model, "complete") || name.starts_with("local/")) continue;
      const auto bytes = static_cast<uint64_t>(std::max<int64_t>(0, number_in(model, "bytes")));
      models.push_back({name, fmt::format("{} on disk, not loaded", bytes_text(bytes))});
    }
  }
}

Error no_models() {
  return {
      ErrorCode::kNotFound,
      "the node has no model; name one: a folder, a .gguf file or a model of the hub (org/name)"};
}

}  // namespace

std::vector<PickableModel> pickable_models(const Json& status, const Json& disk) {
  std::vector<PickableModel> models;
  for (const Json& model : list_in(status, "models")) {
    models.push_back({harmless_line(text_in(model, "name")), state_text(model)});
  }
  add_disk_models(disk, models);
  return models;
}

std::vector<std::string> picker_lines(const std::vector<PickableModel>& models) {
  size_t width = 0;
  for (const PickableModel& model : models) width = std::max(width, model.name.size());
  std::vector<std::string> lines;
  for (const PickableModel& model : models) {
    lines.push_back(
        fmt::format("{:>3}  {:<{}}  {}", lines.size() + 1, model.name, width, model.about));
  }
  return lines;
}

const PickableModel* picked_model(const std::vector<PickableModel>& models,
                                  std::string_view typed) {
  size_t number = 0;
  const auto parsed = std::from_chars(typed.data(), typed.data() + typed.size(), number);
  if (parsed.ec == std::errc() && parsed.ptr == typed.data() + typed.size()) {
    return number >= 1 && number <= models.size() ? &models[number - 1] : nullptr;
  }
  const PickableModel* found = nullptr;
  for (const PickableModel& model : models) {
    if (model.name == typed) return &model;
    if (!model.name.starts_with(typed) || typed.empty()) continue;
    if (found != nullptr) return nullptr;
    found = &model;
  }
  return found;
}

Result<std::string> pick_model(const NodeFlags& flags, const Json& status, bool asks_always) {
  auto models = pickable_models(status, JsonObject());
  if (models.size() == 1 && !asks_always) return models.front().name;
  const bool can_load = !text_in(status, "cluster").empty();
  if (can_load && (models.empty() || asks_always)) {
    const auto disk = ask_node(flags, "/cluster/disk");
    if (disk.ok()) models = pickable_models(status, disk.value());
  }
  if (models.empty()) return no_models();
  if (isatty(STDIN_FILENO) == 0 || !stderr_is_terminal()) {
    std::string names;
    for (const PickableModel& model : models) names += (names.empty() ? "" : ", ") + model.name;
    return Error{ErrorCode::kInvalidArgument, "name one of the node's models: " + names};
  }
  for (const std::string& line : picker_lines(models)) fmt::print(stderr, "{}\n", line);
  LineEditor editor(stdout_manner().may_repaint, [&](std::string_view typed) {
    std::vector<std::string> names;
    for (const PickableModel& model : models) {
      if (model.name.starts_with(typed)) names.push_back(model.name);
    }
    return names;
  });
  while (true) {
    Typed typed = editor.read("Which model? Number or name: ");
    if (typed.kind != Typed::Kind::kLine) {
      return Error{ErrorCode::kCancelled, "no model was chosen"};
    }
    while (typed.text.ends_with(' ')) typed.text.pop_back();
    const PickableModel* picked = picked_model(models, typed.text);
    if (picked != nullptr) return picked->name;
  }
}

}  // namespace lockstep
