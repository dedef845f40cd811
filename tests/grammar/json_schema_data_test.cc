// The schemas of tests/data/json_schema: every instance that does not fit is refused, and every one
// that fits is accepted, except where a generator may be stricter.
#include <fmt/core.h>

#include <map>
#include <set>

#include "base/utf8.h"
#include "grammar/grammar_checks.h"
#include "json/json_file.h"

namespace lockstep {
namespace {

Json data(const std::string& name) {
  auto json = read_json_file(LOCKSTEP_SOURCE_DIR "/tests/data/json_schema/" + name);
  REQUIRE(json.ok());
  return json.value();
}

// Keys in the order in which the schema lists them.
void collect_keys(const Json& schema, std::vector<std::string>& keys) {
  if (const JsonArray* array = schema.if_array()) {
    for (const Json& item : *array) collect_keys(item, keys);
  }
  const JsonObject* object = schema.if_object();
  if (!object) return;
  const auto add = [&](std::string_view key) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.emplace_back(key);
  };
  for (const auto& entry : *object) {
    if (entry.key() == "properties" && entry.value().is_object()) {
      for (const auto& property : entry.value().get_object()) add(property.key());
    }
    if (entry.key() == "required" && entry.value().is_array()) {
      for (const Json& name : entry.value().get_array()) {
        if (name.is_string()) add(name.get_string());
      }
    }
    collect_keys(entry.value(), keys);
  }
}

Json in_order(const Json& value, const std::vector<std::string>& keys) {
  if (const JsonArray* array = value.if_array()) {
    JsonArray result;
    for (const Json& item : *array) result.push_back(in_order(item, keys));
    return result;
  }
  if (!value.is_object()) return value;
  const JsonObject& object = value.get_object();
  JsonObject result;
  for (const std::string& key : keys) {
    if (const Json* entry = object.if_contains(key)) result[key] = in_order(*entry, keys);
  }
  for (const auto& entry : object) {
    if (!result.contains(entry.key())) result[entry.key()] = in_order(entry.value(), keys);
  }
  return result;
}

bool has_undeclared_key(const Json& value, const std::vector<std::string>& keys) {
  if (const JsonArray* array = value.if_array()) {
    return std::any_of(array->begin(), array->end(),
                       [&](const Json& item) { return has_undeclared_key(item, keys); });
  }
  if (!value.is_object()) return false;
  return std::any_of(value.get_object().begin(), value.get_object().end(), [&](const auto& entry) {
    return std::find(keys.begin(), keys.end(), std::string_view(entry.key())) == keys.end() ||
           has_undeclared_key(entry.value(), keys);
  });
}

// The default output of Python's json.dumps: only ASCII.
std::string ascii(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    text.remove_prefix(character.bytes);
    const uint32_t point = character.code_point;
    if (point < 0x80) {
      result += static_cast<char>(point);
    } else if (point < 0x10000) {
      result += fmt::format("\\u{:04x}", point);
    } else {
      result += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((point - 0x10000) >> 10),
                            0xDC00 + ((point - 0x10000) & 0x3FF));
    }
  }
  return result;
}

}  // namespace

TEST_CASE("own schemas: every valid instance is accepted and every invalid one refused") {
  int valid = 0;
  int invalid = 0;
  const Json all = data("tool_schemas.json");
  for (const Json& entry : all.get_array()) {
    const Json& schema = *find(entry, "schema");
    CAPTURE(*get_string(entry, "name").value());
    const Compiled grammar = grammar_of(compile_schema(dump_json(schema)));
    for (const Json& instance : find(entry, "valid")->get_array()) {
      CAPTURE(dump_json(instance));
      CHECK(accepts(grammar, dump_json(instance)));
      CHECK(accepts(grammar, ascii(dump_json(instance))));
      ++valid;
    }
    for (const Json& instance : find(entry, "invalid")->get_array()) {
      CAPTURE(dump_json(instance));
      CHECK_FALSE(accepts(grammar, dump_json(instance)));
      ++invalid;
    }
  }
  MESSAGE(all.get_array().size(), " schemas: ", valid, " valid and ", invalid,
          " invalid instances");
  CHECK(valid + invalid > 80);
}

TEST_CASE("the test suite: invalid instances are refused, valid ones accepted or explained") {
  std::map<std::string, int> refused;  // groups, by the keyword that the message names
  int invalid = 0;
  int valid = 0;
  int undeclared = 0;
  int host_names = 0;
  const Json all = data("test_suite.json");
  for (const Json& group : all.get_array()) {
    const Json& schema = *find(group, "schema");
    const std::string keyword = *get_string(group, "keyword").value();
    CAPTURE(keyword);
    CAPTURE(dump_json(schema));
    const auto compiled = compile_schema(dump_json(schema));
    const bool allows_nothing = error_of(compiled).starts_with("no text at all");
    if (!compiled.ok() && !allows_nothing) {
      REQUIRE(compiled.error().code == ErrorCode::kUnsupported);
      const std::string& message = compiled.error().message;
      const size_t begin = message.find('"') + 1;
      ++refused[message.substr(begin, message.find('"', begin) - begin)];
      continue;
    }
    std::vector<std::string> keys;
    collect_keys(schema, keys);
    for (const Json& test : find(group, "tests")->get_array()) {
      const Json instance = in_order(test.get_array()[1], keys);
      const std::string text = dump_json(instance);
      CAPTURE(text);
      const bool is_accepted = !allows_nothing && accepts(compiled.value(), text);
      if (!test.get_array()[2].get_bool()) {
        CHECK_FALSE(is_accepted);
        ++invalid;
      } else if (is_accepted) {
        CHECK(accepts(compiled.value(), ascii(text)));
        ++valid;
      } else if (keyword == "format/hostname" && text.find("--") != std::string::npos) {
        ++host_names;
      } else {
        CHECK(has_undeclared_key(instance, keys));
        ++undeclared;
      }
    }
  }
  MESSAGE(
      invalid, " invalid instances refused, ", valid, " valid ones accepted; exempt: ", undeclared,
      " with keys that the schema does not declare, ", host_names, " internationalised host names");
  for (const auto& [keyword, count] : refused) MESSAGE(count, " groups refused for ", keyword);
  const std::set<std::string> known{"contains", "uniqueItems", "unevaluatedProperties",
                                    "multipleOf"};
  for (const auto& [keyword, count] : refused) {
    CAPTURE(keyword);
    CHECK(known.contains(keyword));
  }
  CHECK(host_names == 9);
}

}  // namespace lockstep
