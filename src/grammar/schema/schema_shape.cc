// Single schemas: their own keywords and their references.
#include "grammar/schema/schema_shape.h"

#include <algorithm>
#include <array>

#include "grammar/dfa/code_points.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/formats.h"
#include "grammar/schema/number_set.h"
#include "grammar/schema/schema_objects.h"

namespace lockstep {
namespace {

Error no_schema(std::string what) {
  return Error{ErrorCode::kInvalidArgument, std::move(what)};
}

SchemaShape everything() {
  SchemaShape shape;
  shape.allows_null = shape.allows_true = shape.allows_false = true;
  shape.numbers = any_number();
  shape.strings = StringShape{};
  shape.arrays.push_back({});
  shape.objects.push_back({});
  return shape;
}

// Keywords that the automata here cannot enforce.
constexpr std::array<std::string_view, 9> kNotEnforced{
    "uniqueItems",           "contains",     "dependentRequired",
    "dependentSchemas",      "dependencies", "unevaluatedItems",
    "unevaluatedProperties", "$dynamicRef",  "$recursiveRef"};

bool says_nothing(std::string_view keyword, const Json& value) {
  if (keyword == "uniqueItems") return value.is_bool() && !value.get_bool();
  if (keyword == "unevaluatedItems" || keyword == "unevaluatedProperties") {
    return value.is_bool() && value.get_bool();
  }
  return value.is_object() && value.get_object().empty() && keyword != "contains";
}

bool has_any(const Json& schema, std::initializer_list<std::string_view> keywords) {
  return std::any_of(keywords.begin(), keywords.end(),
                     [&](std::string_view keyword) { return find(schema, keyword) != nullptr; });
}

struct Types {
  bool null = false, boolean = false, number = false, integer = false, string = false,
       array = false, object = false;
};

Status add_type(Types& types, const Json& name) {
  const std::string_view text = name.is_string() ? std::string_view(name.get_string()) : "";
  if (text == "null") {
    types.null = true;
  } else if (text == "boolean") {
    types.boolean = true;
  } else if (text == "number") {
    types.number = true;
  } else if (text == "integer") {
    types.integer = true;
  } else if (text == "string") {
    types.string = true;
  } else if (text == "array") {
    types.array = true;
  } else if (text == "object") {
    types.object = true;
  } else {
    return no_schema(
        "\"type\" of a schema must name null, boolean, number, integer, string, "
        "array or object, not " +
        dump_json(name));
  }
  return Ok{};
}

Result<Types> types_of(const Json& schema) {
  Types types;
  const Json* type = find(schema, "type");
  if (!type) return Types{true, true, true, false, true, true, true};
  if (!type->is_array()) {
    TRY(add_type(types, *type));
    return types;
  }
  for (const Json& name : type->get_array()) TRY(add_type(types, name));
  return types;
}

Result<const JsonArray*> array_at(const Json& schema, std::string_view keyword) {
  const Json* value = find(schema, keyword);
  if (!value) return static_cast<const JsonArray*>(nullptr);
  if (!value->is_array()) {
    return no_schema("\"" + std::string(keyword) + "\" of a schema must be an array");
  }
  return static_cast<const JsonArray*>(&value->get_array());
}

// The cost of a copy, with the schemas wrapped around its parts.
size_t steps_of_copy(const Json& value) {
  size_t steps = 4;
  if (const auto* text = value.if_string()) {
    steps += text->size() / 16;
  } else if (const JsonArray* array = value.if_array()) {
    for (const Json& item : *array) steps += steps_of_copy(item);
  } else if (const JsonObject* object = value.if_object()) {
    for (const auto& entry : *object)
      steps += entry.key().size() / 16 + steps_of_copy(entry.value());
  }
  return steps;
}

}  // namespace

const Json* SchemaShapes::keep(Json schema) {
  return &kept_.emplace_back(std::move(schema));
}

Status SchemaShapes::cannot_enforce(std::string_view keyword, std::string_view why) {
  std::string text = "the keyword \"" + std::string(keyword) + "\"";
  if (!why.empty()) text += " " + std::string(why);
  // A schema that is only compared is not enforced: an error, not a warning.
  if (is_strict_ || comparing_depth_ > 0) {
    return Error{ErrorCode::kUnsupported, text + " cannot be enforced while decoding"};
  }
  text += " is not enforced";
  if (known_warnings_.insert(text).second) warnings_.push_back(std::move(text));
  return Ok{};
}

Result<SchemaShape> SchemaShapes::shape_of(const SchemaList& schemas) {
  SchemaShape shape = everything();
  for (const Json* schema : schemas) {
    shape = TRY(intersected(shape, TRY(shape_of_one(*schema, 0))));
  }
  return shape;
}

Result<SchemaShape> SchemaShapes::shape_of_one(const Json& schema, int depth) {
  if (!budget_.spend(100)) return too_much_work();
  if (depth > kSchemaDepthMax) {
    return Error{ErrorCode::kExhausted,
                 "the schema's $ref, allOf, anyOf or oneOf lead to each other more than the limit "
                 "of " +
                     std::to_string(kSchemaDepthMax) + " times without a value in between"};
  }
  if (schema.is_bool()) return schema.get_bool() ? everything() : SchemaShape{};
  if (!schema.is_object()) return no_schema("a schema must be an object, true or false");
  return shape_of_object(schema, depth);
}

// Keywords in the order of the text, so that object keys keep theirs.
Result<SchemaShape> SchemaShapes::shape_of_object(const Json& schema, int depth) {
  TRY(check_keywords(schema));
  SchemaShape shape = everything();
  bool has_own = false;
  const auto add = [&](SchemaShape part) -> Status {
    shape = TRY(intersected(shape, part));
    return Ok{};
  };
  if (!budget_.spend(schema.get_object().size())) return too_much_work();
  for (const auto& entry : schema.get_object()) {
    const std::string_view keyword = entry.key();
    if (keyword == "$ref") {
      if (!entry.value().is_string()) return no_schema("\"$ref\" of a schema must be a string");
      const Json* target = TRY(referenced(entry.value().get_string()));
      TRY(add(TRY(shape_of_one(*target, depth + 1))));
    } else if (keyword == "allOf") {
      for (const Json& part : *TRY(array_at(schema, keyword))) {
        TRY(add(TRY(shape_of_one(part, depth + 1))));
      }
    } else if (keyword == "anyOf") {
      TRY(add(TRY(any_of(*TRY(array_at(schema, keyword)), depth))));
    } else if (keyword == "oneOf") {
      TRY(add(TRY(one_of(*TRY(array_at(schema, keyword)), depth))));
    } else if (keyword == "not") {
      const SchemaShape refused = TRY(shape_of_one(entry.value(), depth + 1));
      auto rest = without(everything(), refused, "not");
      if (rest.ok()) {
        TRY(add(std::move(rest.value())));
      } else if (rest.error().code == ErrorCode::kUnsupported) {
        TRY(cannot_enforce("not"));
      } else {
        return rest.error();
      }
    } else if (keyword == "if") {
      TRY(add(TRY(conditional(schema, depth))));
    } else if (keyword == "enum") {
      TRY(add(TRY(shape_of_values(*TRY(array_at(schema, keyword))))));
    } else if (keyword == "const") {
      TRY(add(TRY(shape_of_value(entry.value()))));
    } else if (!has_own) {
      has_own = true;
      TRY(add(TRY(own_shape(schema))));
    }
  }
  return shape;
}

Status SchemaShapes::check_keywords(const Json& schema) {
  for (const std::string_view keyword : kNotEnforced) {
    const Json* value = find(schema, keyword);
    if (value && !says_nothing(keyword, *value)) TRY(cannot_enforce(keyword));
  }
  for (const std::string_view keyword : {"properties", "patternProperties"}) {
    const Json* value = find(schema, keyword);
    if (value && !value->is_object()) {
      return no_schema("\"" + std::string(keyword) + "\" of a schema must be an object");
    }
  }
  return Ok{};
}

Result<SchemaShape> SchemaShapes::own_shape(const Json& schema) {
  const Types types = TRY(types_of(schema));
  SchemaShape shape;
  shape.allows_null = types.null;
  shape.allows_true = shape.allows_false = types.boolean;
  if (types.number || types.integer) {
    shape.numbers = TRY(own_numbers(schema, !types.number));
  }
  if (types.string) shape.strings = TRY(own_strings(schema));
  if (types.array) {
    const bool speaks =
        has_any(schema, {"items", "prefixItems", "additionalItems", "minItems", "maxItems"});
    shape.arrays.push_back(speaks ? ArrayShape{{&schema}} : ArrayShape{});
  }
  if (types.object) {
    const bool speaks =
        has_any(schema, {"properties", "patternProperties", "additionalProperties", "required",
                         "minProperties", "maxProperties", "propertyNames"});
    shape.objects.push_back(speaks ? ObjectShape{{&schema}} : ObjectShape{});
  }
  return shape;
}

Result<SharedDfa> SchemaShapes::own_numbers(const Json& schema, bool only_whole) {
  const SharedDfa& whole_set = only_whole ? whole_number() : any_number();
  const bool is_bounded =
      has_any(schema, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"});
  if (!is_bounded) return whole_set;
  Dfa numbers = *whole_set;
  const auto narrow = [&](const Dfa& other) -> Status {
    numbers = TRY(join(numbers, other, DfaJoin::kBoth, budget_));
    return Ok{};
  };
  struct Limit {
    std::string_view keyword;
    Bound bound;
    Bound exclusive;  // with draft-04's "exclusiveMinimum": true
  };
  constexpr std::array<Limit, 4> kLimits{{
      {"minimum", Bound::kAtLeast, Bound::kAbove},
      {"maximum", Bound::kAtMost, Bound::kBelow},
      {"exclusiveMinimum", Bound::kAbove, Bound::kAbove},
      {"exclusiveMaximum", Bound::kBelow, Bound::kBelow},
  }};
  for (const Limit& limit : kLimits) {
    const Json* value = find(schema, limit.keyword);
    if (!value || (limit.keyword.starts_with("exclusive") && value->is_bool())) continue;
    if (!value->is_number()) {
      return no_schema("\"" + std::string(limit.keyword) + "\" of a schema must be a number");
    }
    const Json* exclusive =
        find(schema, limit.keyword == "minimum" ? "exclusiveMinimum" : "exclusiveMaximum");
    const bool is_exclusive = exclusive && exclusive->is_bool() && exclusive->get_bool();
    const Bound bound = is_exclusive ? limit.exclusive : limit.bound;
    TRY(narrow(TRY(numbers_within(bound, decimal_of(*value), budget_))));
  }
  if (const Json* step = find(schema, "multipleOf")) {
    if (!step->is_number() || !(step->to_number<double>() > 0)) {
      return no_schema("\"multipleOf\" of a schema must be a number above 0");
    }
    auto multiples = multiples_of(decimal_of(*step), budget_);
    if (multiples.ok()) {
      TRY(narrow(multiples.value()));
    } else if (is_strict_ || multiples.error().code != ErrorCode::kUnsupported) {
      return multiples.error();
    } else {
      TRY(cannot_enforce("multipleOf"));
    }
  }
  if (!only_whole) TRY(narrow_to_exact(numbers));
  if (numbers.empty()) return SharedDfa();
  return std::make_shared<const Dfa>(std::move(numbers));
}

// Skipped if that would take too many states.
Status SchemaShapes::narrow_to_exact(Dfa& numbers) {
  if (numbers.states.size() * exact_number()->states.size() > kDfaStatesMax) return Ok{};
  numbers = TRY(join(numbers, *exact_number(), DfaJoin::kBoth, budget_));
  return Ok{};
}

Result<StringShape> SchemaShapes::own_strings(const Json& schema) {
  StringShape strings;
  strings.min = TRY(schema_count(schema, "minLength", 0));
  strings.max = TRY(schema_count(schema, "maxLength", UINT32_MAX));
  if (const auto text = TRY(get_string(schema, "pattern"))) {
    auto words = pattern(*text);
    if (words.ok()) {
      strings.words = words.value();
    } else if (words.error().code == ErrorCode::kUnsupported && !is_strict_) {
      TRY(cannot_enforce("pattern", "with " + words.error().message));
    } else {
      return Error{words.error().code, "the keyword \"pattern\": " + words.error().message};
    }
  }
  const auto format = TRY(get_string(schema, "format"));
  if (!format) return strings;
  const SharedDfa words = format_dfa(*format);
  if (!words) {
    TRY(cannot_enforce("format", "\"" + *format + "\" (known are " + known_formats() + ")"));
    return strings;
  }
  if (!strings.words) {
    strings.words = words;
    return strings;
  }
  Dfa joined = TRY(join(*strings.words, *words, DfaJoin::kBoth, budget_));
  strings.words = std::make_shared<const Dfa>(std::move(joined));
  return strings;
}

Result<std::shared_ptr<const Dfa>> SchemaShapes::pattern(const std::string& text) {
  const auto known = patterns_.find(text);
  if (known != patterns_.end()) return known->second;
  auto dfa = std::make_shared<const Dfa>(TRY(regex_dfa(text, RegexMatch::kSearch, budget_)));
  patterns_.emplace(text, dfa);
  return std::shared_ptr<const Dfa>(dfa);
}

Result<const Json*> SchemaShapes::referenced(std::string_view reference) {
  const std::string_view whole = reference;
  const auto unknown = [whole] {
    return Error{ErrorCode::kUnsupported,
                 "the keyword \"$ref\" with \"" + std::string(whole) +
                     "\" cannot be enforced while decoding; refer to a place inside the "
                     "schema, such as #/$defs/name"};
  };
  if (!budget_.spend(reference.size())) return too_much_work();
  if (!reference.starts_with('#')) return unknown();
  const Json* place = &root_;
  reference.remove_prefix(1);
  while (!reference.empty()) {
    if (reference[0] != '/') return unknown();
    reference.remove_prefix(1);
    const std::string_view part = reference.substr(0, reference.find('/'));
    reference.remove_prefix(part.size());
    std::string key;
    for (size_t i = 0; i < part.size(); ++i) {
      const auto hex = [&](size_t at) {
        const auto digit = std::string_view("0123456789abcdef")
                               .find(at < part.size() ? static_cast<char>(part[at] | 0x20) : ' ');
        return digit == std::string_view::npos ? -1 : static_cast<int>(digit);
      };
      if (part[i] == '~' && i + 1 < part.size()) {
        key += part[++i] == '0' ? '~' : '/';
      } else if (part[i] == '%' && hex(i + 1) >= 0 && hex(i + 2) >= 0) {
        key += static_cast<char>(hex(i + 1) * 16 + hex(i + 2));
        i += 2;
      } else {
        key += part[i];
      }
    }
    if (const JsonArray* array = place->if_array()) {
      const bool is_index = !key.empty() && key.size() < 9 &&
                            key.find_first_not_of("0123456789") == std::string::npos;
      const size_t index = is_index ? std::stoul(key) : array->size();
      place = index < array->size() ? &(*array)[index] : nullptr;
    } else {
      place = find(*place, key);
    }
    if (!place) {
      return no_schema("\"$ref\" of the schema leads to " + key + ", which does not exist");
    }
  }
  return place;
}

Result<SchemaShape> SchemaShapes::shape_of_values(const JsonArray& values) {
  std::vector<SchemaShape> others;
  std::vector<std::vector<uint32_t>> words;
  size_t characters = 0;
  for (const Json& value : values) {
    if (value.is_string()) {
      if (!budget_.spend(2 + value.get_string().size() / 4)) return too_much_work();
      words.push_back(code_points(value.get_string()));
      characters += words.back().size();
    } else {
      others.push_back(TRY(shape_of_value(value)));
    }
  }
  SchemaShape shape = TRY(united(std::move(others)));
  if (characters > kEnumCharactersMax) {
    return Error{ErrorCode::kExhausted, "\"enum\" of the schema has more than the limit of " +
                                            std::to_string(kEnumCharactersMax) + " characters"};
  }
  if (!words.empty()) {
    Dfa dfa = TRY(dfa_of_words(words, budget_));
    shape.strings = StringShape{std::make_shared<const Dfa>(std::move(dfa))};
  }
  return shape;
}

// Arrays and objects become schemas that allow only them, with copies of their parts.
Result<SchemaShape> SchemaShapes::shape_of_value(const Json& value) {
  if (!budget_.spend(100)) return too_much_work();
  SchemaShape shape;
  if (value.is_null()) {
    shape.allows_null = true;
  } else if (value.is_bool()) {
    (value.get_bool() ? shape.allows_true : shape.allows_false) = true;
  } else if (value.is_number()) {
    shape.numbers = std::make_shared<const Dfa>(TRY(texts_of_number(value, budget_)));
  } else if (value.is_string()) {
    Dfa words = TRY(dfa_of_words({code_points(value.get_string())}, budget_));
    shape.strings = StringShape{std::make_shared<const Dfa>(std::move(words))};
  } else if (value.is_array()) {
    if (!budget_.spend(steps_of_copy(value))) return too_much_work();
    JsonArray items;
    for (const Json& item : value.get_array()) items.push_back(JsonObject{{"const", item}});
    const size_t count = items.size();
    shape.arrays.push_back({{keep(
        JsonObject{{"prefixItems", std::move(items)}, {"items", false}, {"minItems", count}})}});
  } else {
    return shape_of_object_value(value.get_object());
  }
  return shape;
}

// Small objects allow any key order, because a constant does not prescribe one.
Result<SchemaShape> SchemaShapes::shape_of_object_value(const JsonObject& value) {
  constexpr size_t kPermutedKeysMax = 3;
  SchemaShape shape;
  std::vector<size_t> order;
  std::vector<const JsonObject::value_type*> entries;
  for (const auto& entry : value) {
    order.push_back(entries.size());
    entries.push_back(&entry);
  }
  size_t steps = 50;
  for (const auto* entry : entries)
    steps += entry->key().size() / 16 + steps_of_copy(entry->value());
  do {
    if (!budget_.spend(steps)) return too_much_work();
    JsonObject properties;
    JsonArray required;
    for (const size_t index : order) {
      properties[entries[index]->key()] = JsonObject{{"const", entries[index]->value()}};
      required.emplace_back(entries[index]->key());
    }
    shape.objects.push_back({{keep(JsonObject{{"properties", std::move(properties)},
                                              {"required", std::move(required)},
                                              {"additionalProperties", false}})}});
  } while (order.size() <= kPermutedKeysMax && std::next_permutation(order.begin(), order.end()));
  return shape;
}

Result<SchemaShape> SchemaShapes::any_of(const JsonArray& schemas, int depth) {
  std::vector<SchemaShape> shapes;
  for (const Json& schema : schemas) shapes.push_back(TRY(shape_of_one(schema, depth + 1)));
  return united(std::move(shapes));
}

Result<SchemaShape> SchemaShapes::one_of(const JsonArray& schemas, int depth) {
  std::vector<SchemaShape> shapes;
  for (const Json& schema : schemas) shapes.push_back(TRY(shape_of_one(schema, depth + 1)));
  std::vector<SchemaShape> alone;
  for (size_t i = 0; i < shapes.size(); ++i) {
    SchemaShape only = shapes[i];
    for (size_t k = 0; k < shapes.size(); ++k) {
      if (k == i) continue;
      auto rest = without(only, shapes[k], "oneOf");
      if (rest.ok()) {
        only = std::move(rest.value());
        continue;
      }
      if (rest.error().code != ErrorCode::kUnsupported) return rest.error();
      TRY(cannot_enforce("oneOf", "with alternatives that are not seen to exclude each other"));
    }
    alone.push_back(std::move(only));
  }
  return united(std::move(alone));
}

Result<SchemaShape> SchemaShapes::conditional(const Json& schema, int depth) {
  const Json* then_schema = find(schema, "then");
  const Json* else_schema = find(schema, "else");
  if (!then_schema && !else_schema) return everything();
  const SchemaShape condition = TRY(shape_of_one(*find(schema, "if"), depth + 1));
  auto otherwise = without(everything(), condition, "if");
  if (!otherwise.ok()) {
    if (otherwise.error().code != ErrorCode::kUnsupported) return otherwise.error();
    TRY(cannot_enforce("if"));
    return everything();
  }
  const SchemaShape yes =
      then_schema ? TRY(intersected(condition, TRY(shape_of_one(*then_schema, depth + 1))))
                  : condition;
  const SchemaShape no =
      else_schema ? TRY(intersected(otherwise.value(), TRY(shape_of_one(*else_schema, depth + 1))))
                  : otherwise.value();
  return united(yes, no);
}

}  // namespace lockstep
