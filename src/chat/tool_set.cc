#include "chat/tool_set.h"

#include "chat/pending_text.h"

namespace lockstep {
namespace {

constexpr int kSchemaDepthMax = 8;  // of references and unions inside each other

JsonTypes named_type(std::string_view name) {
  if (name == "string") return kJsonString;
  if (name == "null") return kJsonNull;
  if (name == "boolean") return kJsonBool;
  if (name == "integer") return kJsonInteger;
  if (name == "number") return kJsonInteger | kJsonFraction;
  if (name == "array") return kJsonArray;
  if (name == "object") return kJsonObject;
  return kJsonAny;
}

JsonTypes type_of(const Json& value) {
  if (value.is_string()) return kJsonString;
  if (value.is_null()) return kJsonNull;
  if (value.is_bool()) return kJsonBool;
  if (value.is_array()) return kJsonArray;
  if (value.is_object()) return kJsonObject;
  return value.is_double() ? kJsonFraction : kJsonInteger;
}

// "#/$defs/NAME" in `root`; null if it leads nowhere.
const Json* referenced(const Json& root, std::string_view reference) {
  if (reference.substr(0, 2) != "#/") return nullptr;
  const Json* at = &root;
  for (reference.remove_prefix(2); at != nullptr;) {
    const size_t end = reference.find('/');
    at = find(*at, reference.substr(0, end));
    if (end == std::string_view::npos) break;
    reference.remove_prefix(end + 1);
  }
  return at;
}

JsonTypes schema_types(const Json& schema, const Json& root, int depth);

JsonTypes union_types(const Json& schemas, const Json& root, int depth) {
  JsonTypes types = 0;
  for (const Json& one : schemas.get_array()) types |= schema_types(one, root, depth + 1);
  return types;
}

JsonTypes declared_types(const Json& type) {
  if (type.is_string()) return named_type(type.get_string());
  JsonTypes types = 0;
  if (!type.is_array()) return kJsonAny;
  for (const Json& one : type.get_array()) {
    types |= one.is_string() ? named_type(one.get_string()) : kJsonAny;
  }
  return types;
}

JsonTypes schema_types(const Json& schema, const Json& root, int depth) {
  if (depth > kSchemaDepthMax) return kJsonAny;
  JsonTypes types = kJsonAny;
  if (const Json* reference = find(schema, "$ref"); reference && reference->is_string()) {
    const Json* target = referenced(root, reference->get_string());
    if (target) types &= schema_types(*target, root, depth + 1);
  }
  if (const Json* type = find(schema, "type")) types &= declared_types(*type);
  if (const Json* constant = find(schema, "const")) types &= type_of(*constant);
  if (const Json* values = find(schema, "enum"); values && values->is_array()) {
    JsonTypes some = 0;
    for (const Json& value : values->get_array()) some |= type_of(value);
    types &= some;
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    const Json* schemas = find(schema, key);
    if (schemas && schemas->is_array()) types &= union_types(*schemas, root, depth);
  }
  if (const Json* all = find(schema, "allOf"); all && all->is_array()) {
    for (const Json& one : all->get_array()) types &= schema_types(one, root, depth + 1);
  }
  return types == 0 ? kJsonAny : types;  // a schema that nothing satisfies says nothing
}

// As models write them that have seen much Python.
struct PythonWord {
  std::string_view word;
  std::string_view json;
  JsonTypes type;
};
constexpr PythonWord kPythonWords[] = {
    {"True", "true", kJsonBool}, {"False", "false", kJsonBool}, {"None", "null", kJsonNull}};

}  // namespace

ToolSet::ToolSet(const Json& tools) {
  if (!tools.is_array()) return;
  for (const Json& tool : tools.get_array()) {
    const Json* function = find(tool, "function");
    const Json* name = find(function ? *function : tool, "name");
    if (!name || !name->is_string()) continue;
    Parameters& parameters = tools_[std::string(name->get_string())];
    const Json* schema = find(function ? *function : tool, "parameters");
    const Json* properties = schema ? find(*schema, "properties") : nullptr;
    if (!properties || !properties->is_object()) continue;
    for (const auto& property : properties->get_object()) {
      parameters[std::string(property.key())] = schema_types(property.value(), *schema, 0);
    }
  }
}

JsonTypes ToolSet::types_of(std::string_view tool, std::string_view parameter) const {
  const auto known = tools_.find(tool);
  if (known == tools_.end()) return kJsonAny;
  const auto type = known->second.find(parameter);
  return type == known->second.end() ? kJsonAny : type->second;
}

std::string value_as_json(std::string_view text, JsonTypes types) {
  const std::string_view trimmed = without_blanks(text);
  const auto parsed = types == kJsonString ? Result<Json>(Json()) : parse_json(trimmed);
  if (types != kJsonString && parsed.ok()) {
    const JsonTypes type = type_of(parsed.value());
    const bool is_quoted_text = type == kJsonString && (types & kJsonString) != 0;
    if ((type & types) != 0 && !is_quoted_text) return std::string(trimmed);
    if ((types & kJsonString) == 0) return std::string(trimmed);  // wrong, but what was meant
  }
  for (const PythonWord& word : kPythonWords) {
    if (types != kJsonAny && (types & word.type) != 0 && trimmed == word.word) {
      return std::string(word.json);
    }
  }
  std::string quoted;
  append_json_string(quoted, text);
  return quoted;
}

}  // namespace lockstep
