#include "chat/constraints/plain_schema.h"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 9> kForPeople{"title",      "description", "examples",
                                                     "example",    "default",     "$comment",
                                                     "deprecated", "readOnly",    "writeOnly"};
// Keywords whose value is a schema, or a list of them.
constexpr std::array<std::string_view, 15> kSchemas{"items",
                                                    "prefixItems",
                                                    "additionalItems",
                                                    "additionalProperties",
                                                    "propertyNames",
                                                    "not",
                                                    "if",
                                                    "then",
                                                    "else",
                                                    "contains",
                                                    "allOf",
                                                    "anyOf",
                                                    "oneOf",
                                                    "unevaluatedItems",
                                                    "unevaluatedProperties"};
// Keywords whose value maps names to schemas.
constexpr std::array<std::string_view, 6> kNamed{
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Json plain_schemas(const Json& value) {
  if (!value.is_array()) return plain_schema(value);
  JsonArray list;
  for (const Json& schema : value.get_array()) list.push_back(plain_schema(schema));
  return list;
}

Json plain_named(const Json& value) {
  if (!value.is_object()) return value;
  JsonObject named;
  for (const auto& entry : value.get_object()) {
    named.emplace(entry.key(), plain_schema(entry.value()));
  }
  return named;
}

}  // namespace

// Recursion is limited by the parser's depth limit.
Json plain_schema(const Json& schema) {
  if (!schema.is_object()) return schema;
  JsonObject plain;
  for (const auto& entry : schema.get_object()) {
    const std::string_view keyword = entry.key();
    if (contains(kForPeople, keyword)) continue;
    if (contains(kSchemas, keyword)) {
      plain.emplace(keyword, plain_schemas(entry.value()));
    } else if (contains(kNamed, keyword)) {
      plain.emplace(keyword, plain_named(entry.value()));
    } else {
      plain.emplace(keyword, entry.value());
    }
  }
  return plain;
}

}  // namespace lockstep
