#include "node/models/model_name.h"

#include <fmt/core.h>

#include <filesystem>

#include "gguf/gguf_model.h"
#include "hub/files/model_id.h"
#include "hub/model_cache.h"
#include "model/load/shape_model.h"

namespace lockstep {

std::string model_name_of(std::string_view model) {
  if (is_shape_model(model)) {
    if (const auto shape = parse_shape_model(model); shape.ok()) return shape.value().shape;
  }
  const std::filesystem::path path = std::filesystem::path(model).lexically_normal();
  if (path.extension() == ".gguf") return gguf_model_name(path);
  if (const std::string repository = repository_of_path(path); !repository.empty()) {
    return repository;
  }
  const auto id = parse_model_id(model);
  if (id.ok() && !id.value().file.empty()) return gguf_model_name(id.value().file);
  if (id.ok()) return id.value().repository;
  // "models/stories260K/" has an empty last component.
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

bool is_published_model(std::string_view model) {
  return is_shape_model(model) || parse_model_id(model).ok();
}

Status check_model_location(std::string_view model) {
  if (model.starts_with('/') || is_published_model(model)) return Ok{};
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("\"{}\" is neither a path that begins with / nor a hub model (org/name)", model)};
}

}  // namespace lockstep
