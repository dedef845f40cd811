#include "chat/tools/schema_types.h"

#include "base/threads/work.h"

namespace lockstep {
namespace {

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

JsonTypes declared_types(const Json& type) {
  if (type.is_string()) return named_type(type.get_string());
  JsonTypes types = 0;
  if (!type.is_array()) return kJsonAny;
  for (const Json& one : type.get_array()) {
    types |= one.is_string() ? named_type(one.get_string()) : kJsonAny;
    if (types == kJsonAny) break;
  }
  return types;
}

}  // namespace

JsonTypes json_type_of(const Json& value) {
  if (value.is_string()) return kJsonString;
  if (value.is_null()) return kJsonNull;
  if (value.is_bool()) return kJsonBool;
  if (value.is_array()) return kJsonArray;
  if (value.is_object()) return kJsonObject;
  return value.is_double() ? kJsonFraction : kJsonInteger;
}

// Resolves "#/$defs/NAME"; null if there is no such schema.
const Json* SchemaTypes::target(std::string_view reference) const {
  if (reference.substr(0, 2) != "#/") return nullptr;
  const Json* at = &root_;
  for (reference.remove_prefix(2); at != nullptr;) {
    const size_t end = reference.find('/');
    at = find(*at, reference.substr(0, end));
    if (end == std::string_view::npos) break;
    reference.remove_prefix(end + 1);
  }
  return at;
}

JsonTypes SchemaTypes::of_reference(std::string_view reference, int depth) {
  const Json* const schema = target(reference);
  if (schema == nullptr) return kJsonAny;
  const size_t place = static_cast<size_t>(depth);
  if (const Known known = known_[schema][place]; known.is_known) return known.types;
  const JsonTypes found = types(*schema, depth);
  known_[schema][place] = {found, true};
  return found;
}

// Stops once the rest can add nothing.
JsonTypes SchemaTypes::of_union(const Json& schemas, int depth) {
  JsonTypes some = 0;
  for (const Json& one : schemas.get_array()) {
    some |= types(one, depth);
    if (some == kJsonAny) break;
  }
  return some;
}

JsonTypes SchemaTypes::of_values(const Json& values) {
  JsonTypes some = 0;
  for (const Json& value : values.get_array()) {
    ++steps_;
    some |= json_type_of(value);
    if (some == kJsonAny || Work::is_over()) break;
  }
  return some;
}

JsonTypes SchemaTypes::types(const Json& schema, int depth) {
  ++steps_;
  if (depth > kDepthMax || Work::is_over()) return kJsonAny;
  JsonTypes types = kJsonAny;
  if (const Json* reference = find(schema, "$ref"); reference && reference->is_string()) {
    types &= of_reference(reference->get_string(), depth + 1);
  }
  if (const Json* type = find(schema, "type")) types &= declared_types(*type);
  if (const Json* constant = find(schema, "const")) types &= json_type_of(*constant);
  if (const Json* values = find(schema, "enum"); values && values->is_array()) {
    types &= of_values(*values);
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    const Json* schemas = find(schema, key);
    if (schemas && schemas->is_array()) types &= of_union(*schemas, depth + 1);
  }
  if (const Json* all = find(schema, "allOf"); all && all->is_array()) {
    for (const Json& one : all->get_array()) types &= this->types(one, depth + 1);
  }
  return types == 0 ? kJsonAny : types;  // an unsatisfiable schema gives no information
}

}  // namespace lockstep
