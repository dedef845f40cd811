#include "grammar/schema/schema_objects.h"

#include <algorithm>

#include "base/text_hash.h"
#include "grammar/dfa/code_points.h"

namespace lockstep {
namespace {

constexpr size_t kKeyKindsMax = 64;    // of patternProperties that overlap
constexpr size_t kStepsOfLookUp = 10;  // to look up a key in one schema

const JsonObject* object_at(const Json& schema, std::string_view keyword) {
  const Json* value = find(schema, keyword);
  return value ? value->if_object() : nullptr;
}

void append(SchemaList& list, const Json* schema) {
  if (std::find(list.begin(), list.end(), schema) == list.end()) list.push_back(schema);
}

// Appends one schema's requirements on the key `name`.
Status append_key(SchemaShapes& shapes, const Json& schema, std::string_view name,
                  SchemaList& value) {
  bool is_named = false;
  if (!shapes.budget().spend(kStepsOfLookUp + (name.size() + value.size()) / 16)) {
    return too_much_work();
  }
  if (const JsonObject* properties = object_at(schema, "properties")) {
    if (const Json* property = properties->if_contains(name)) {
      append(value, property);
      is_named = true;
    }
  }
  if (const JsonObject* patterns = object_at(schema, "patternProperties")) {
    const std::vector<uint32_t> points = code_points(name);
    for (const auto& entry : *patterns) {
      const auto dfa = TRY(shapes.pattern(std::string(entry.key())));
      const size_t steps = kStepsOfLookUp + points.size() + value.size() / 16;
      if (!shapes.budget().spend(steps)) return too_much_work();
      if (!dfa_accepts(*dfa, points)) continue;
      append(value, &entry.value());
      is_named = true;
    }
  }
  const Json* additional = find(schema, "additionalProperties");
  if (!is_named && additional) append(value, additional);
  return Ok{};
}

Result<Dfa> any_key(WorkBudget& budget) {
  return dfa_of_length(SymbolSet::scalar_values(), 0, UINT32_MAX, budget);
}

// The names that "propertyNames" allows.
Result<Dfa> allowed_names(SchemaShapes& shapes, const ObjectShape& shape) {
  SchemaList schemas;
  for (const Json* schema : shape.schemas) {
    if (const Json* names = find(*schema, "propertyNames")) append(schemas, names);
  }
  if (schemas.empty()) return any_key(shapes.budget());
  const SchemaShape names = TRY(shapes.shape_of(schemas));
  if (!names.strings) return Dfa{};
  return shapes.words_of(*names.strings);
}

struct KeyKind {
  OtherKeys keys;
  std::vector<bool> is_matched;  // by a pattern of this schema
};

// Splits `kinds` by a pattern: matching names also get its value.
Status cut(SchemaShapes& shapes, std::vector<KeyKind>& kinds, size_t schema,
           const std::string& pattern, const Json* value) {
  const auto dfa = TRY(shapes.pattern(pattern));
  std::vector<KeyKind> result;
  for (const KeyKind& kind : kinds) {
    const size_t copied = kind.keys.value.size() + kind.is_matched.size() / 64;
    if (!shapes.budget().spend(4 + copied / 8)) return too_much_work();
    Dfa inside = TRY(join(kind.keys.names, *dfa, DfaJoin::kBoth, shapes.budget()));
    Dfa outside = TRY(join(kind.keys.names, *dfa, DfaJoin::kFirstOnly, shapes.budget()));
    if (!inside.empty()) {
      KeyKind matched{{std::move(inside), kind.keys.value}, kind.is_matched};
      append(matched.keys.value, value);
      matched.is_matched[schema] = true;
      result.push_back(std::move(matched));
    }
    if (!outside.empty()) {
      result.push_back({{std::move(outside), kind.keys.value}, kind.is_matched});
    }
  }
  if (result.size() > kKeyKindsMax) {
    return Error{ErrorCode::kExhausted, "\"patternProperties\" overlap in more than the limit of " +
                                            std::to_string(kKeyKindsMax) +
                                            " ways; use patterns that exclude each other"};
  }
  kinds = std::move(result);
  return Ok{};
}

Result<std::vector<OtherKeys>> other_keys(SchemaShapes& shapes, const ObjectShape& shape,
                                          const std::vector<KeySchema>& keys, Dfa names) {
  std::vector<std::vector<uint32_t>> named;
  size_t characters = 0;
  for (const KeySchema& key : keys) {
    named.push_back(code_points(key.name));
    characters += named.back().size();
  }
  if (characters > kEnumCharactersMax) {
    return Error{ErrorCode::kExhausted, "the keys of an object have more than the limit of " +
                                            std::to_string(kEnumCharactersMax) + " characters"};
  }
  const Dfa words = TRY(dfa_of_words(named, shapes.budget()));
  names = TRY(join(names, words, DfaJoin::kFirstOnly, shapes.budget()));
  if (names.empty()) return std::vector<OtherKeys>{};
  const size_t count = shape.schemas.size();
  std::vector<KeyKind> kinds{{{std::move(names), {}}, std::vector<bool>(count)}};
  for (size_t i = 0; i < count; ++i) {
    const JsonObject* patterns = object_at(*shape.schemas[i], "patternProperties");
    if (!patterns) continue;
    for (const auto& entry : *patterns) {
      TRY(cut(shapes, kinds, i, std::string(entry.key()), &entry.value()));
    }
  }
  const bool is_open = !is_closed(shape);
  std::vector<OtherKeys> others;
  for (KeyKind& kind : kinds) {
    if (!shapes.budget().spend(2 * count + count * count / 50)) return too_much_work();
    bool is_allowed = is_open;
    for (size_t i = 0; i < count; ++i) {
      const Json* additional = find(*shape.schemas[i], "additionalProperties");
      if (!kind.is_matched[i] && additional) append(kind.keys.value, additional);
      if (kind.is_matched[i] || additional) is_allowed = true;
    }
    const bool is_never =
        std::any_of(kind.keys.value.begin(), kind.keys.value.end(),
                    [](const Json* value) { return value->is_bool() && !value->get_bool(); });
    if (is_allowed && !is_never) others.push_back(std::move(kind.keys));
  }
  return others;
}

}  // namespace

Result<uint32_t> schema_count(const Json& schema, std::string_view keyword, uint32_t otherwise) {
  const Json* value = find(schema, keyword);
  if (!value) return otherwise;
  const auto number = get_double(schema, keyword);
  const double count = number.ok() ? number.value().value_or(-1) : -1;
  if (count >= 4294967294.0) return UINT32_MAX - 1;
  if (count < 0 || count != static_cast<double>(static_cast<uint32_t>(count))) {
    return Error{ErrorCode::kInvalidArgument,
                 "\"" + std::string(keyword) + "\" of a schema must be a whole number from 0 on"};
  }
  return static_cast<uint32_t>(count);
}

bool is_closed(const ObjectShape& shape) {
  bool names_keys = false;
  for (const Json* schema : shape.schemas) {
    if (find(*schema, "additionalProperties")) return false;
    names_keys |= find(*schema, "properties") || find(*schema, "patternProperties");
  }
  return names_keys;
}

Result<SchemaList> value_of_key(SchemaShapes& shapes, const ObjectShape& shape,
                                std::string_view name) {
  SchemaList value;
  for (const Json* schema : shape.schemas) TRY(append_key(shapes, *schema, name, value));
  return value;
}

Result<std::vector<KeySchema>> named_keys(SchemaShapes& shapes, const ObjectShape& shape) {
  std::vector<KeySchema> keys;
  std::unordered_map<std::string, size_t, TextHash> places;
  const auto key_of = [&](std::string_view name) -> KeySchema& {
    const auto [place, is_new] = places.try_emplace(std::string(name), keys.size());
    if (is_new) keys.push_back({std::string(name), {}, false});
    return keys[place->second];
  };
  for (const Json* schema : shape.schemas) {
    if (const JsonObject* properties = object_at(*schema, "properties")) {
      if (!shapes.budget().spend(kStepsOfLookUp * properties->size())) return too_much_work();
      for (const auto& entry : *properties) key_of(entry.key());
    }
  }
  for (const Json* schema : shape.schemas) {
    const Json* required = find(*schema, "required");
    if (!required || !required->is_array()) continue;
    if (!shapes.budget().spend(kStepsOfLookUp * required->get_array().size()))
      return too_much_work();
    for (const Json& name : required->get_array()) {
      if (name.is_string()) key_of(name.get_string()).is_required = true;
    }
  }
  for (KeySchema& key : keys) key.value = TRY(value_of_key(shapes, shape, key.name));
  return keys;
}

Result<ObjectFacts> object_facts(SchemaShapes& shapes, const ObjectShape& shape) {
  ObjectFacts facts;
  facts.keys = TRY(named_keys(shapes, shape));
  for (const Json* schema : shape.schemas) {
    facts.min = std::max(facts.min, TRY(schema_count(*schema, "minProperties", 0)));
    facts.max = std::min(facts.max, TRY(schema_count(*schema, "maxProperties", UINT32_MAX)));
  }
  Dfa names = TRY(allowed_names(shapes, shape));
  for (KeySchema& key : facts.keys) {
    if (!shapes.budget().spend(2 + key.name.size())) return too_much_work();
    if (!dfa_accepts(names, code_points(key.name))) key.value = {shapes.keep(Json(false))};
  }
  facts.others = TRY(other_keys(shapes, shape, facts.keys, std::move(names)));
  return facts;
}

Result<ArrayFacts> array_facts(SchemaShapes& shapes, const ArrayShape& shape) {
  ArrayFacts facts;
  struct Items {
    const JsonArray* first = nullptr;
    const Json* rest = nullptr;
  };
  std::vector<Items> of_schema;
  size_t first_count = 0;
  for (const Json* schema : shape.schemas) {
    Items items;
    const Json* prefix = find(*schema, "prefixItems");
    const Json* all = find(*schema, "items");
    if (prefix) items.first = prefix->if_array();
    items.rest = all;
    if (all && all->is_array()) {  // draft-07
      items.first = all->if_array();
      items.rest = find(*schema, "additionalItems");
    }
    if (items.first) first_count = std::max(first_count, items.first->size());
    of_schema.push_back(items);
    facts.min = std::max(facts.min, TRY(schema_count(*schema, "minItems", 0)));
    facts.max = std::min(facts.max, TRY(schema_count(*schema, "maxItems", UINT32_MAX)));
  }
  const size_t schemas = of_schema.size();
  // Appending an item searches a list of up to `schemas` entries.
  if (!shapes.budget().spend((2 * first_count + 1) * (schemas + schemas * schemas / 50))) {
    return too_much_work();
  }
  facts.first.resize(first_count);
  for (const Items& items : of_schema) {
    for (size_t i = 0; i < first_count; ++i) {
      const bool is_named = items.first && i < items.first->size();
      const Json* schema = is_named ? &(*items.first)[i] : items.rest;
      if (schema) append(facts.first[i], schema);
    }
    if (items.rest) append(facts.rest, items.rest);
  }
  return facts;
}

}  // namespace lockstep
