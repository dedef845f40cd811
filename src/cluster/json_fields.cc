#include "cluster/json_fields.h"

#include <fmt/core.h>

namespace lockstep {
namespace {

Error corrupt_field(std::string_view key, std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("\"{}\" must be {}", key, what)};
}

}  // namespace

Result<int64_t> number_field(const Json& object, std::string_view key, int64_t most) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0 ||
      value->get_int64() > most) {
    return corrupt_field(key, fmt::format("an integer from 0 to {}", most));
  }
  return value->get_int64();
}

Result<bool> bool_field(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_bool()) return corrupt_field(key, "true or false");
  return value->get_bool();
}

Result<std::string> text_field(const Json& object, std::string_view key, size_t bytes_max) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_string() || value->get_string().size() > bytes_max) {
    return corrupt_field(key, fmt::format("text of at most {} bytes", bytes_max));
  }
  return std::string(value->get_string());
}

Result<NodeId> node_of(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_string();
    if (const auto id = NodeId::parse({text.data(), text.size()})) return *id;
  }
  return Error{ErrorCode::kCorrupt, "a node's id must be 64 hex digits"};
}

Result<NodeId> node_field(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (value == nullptr) return corrupt_field(key, "a node's id");
  return node_of(*value);
}

Result<const JsonArray*> list_field(const Json& object, std::string_view key, size_t count_max) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_array() || value->get_array().size() > count_max) {
    return corrupt_field(key, fmt::format("a list of at most {}", count_max));
  }
  return &value->get_array();
}

}  // namespace lockstep
