#include "server/chat/chat_constraint.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "chat/constraints/plain_schema.h"
#include "grammar/constraint.h"
#include "server/chat/chat_messages.h"

namespace lockstep {
namespace {

constexpr size_t kGuidedChoicesMax = 1'000;

// The function of {"type": "function", "function": {"name": ...}} or of the flat form.
std::string tool_name_of(const Json& tool) {
  const Json* function = find(tool, "function");
  const Json* name = find(function != nullptr ? *function : tool, "name");
  return name != nullptr && name->is_string() ? std::string(name->get_string()) : std::string();
}

ApiResult<Json> only_these(const Json& tools, const std::set<std::string>& names) {
  std::set<std::string> offered;
  for (const Json& tool : tools.get_array()) offered.insert(tool_name_of(tool));
  for (const std::string& name : names) {
    if (offered.contains(name)) continue;
    return bad_field("tool_choice",
                     fmt::format("\"tool_choice\" names \"{}\", which is not one of the \"tools\"",
                                 name.substr(0, 64)));
  }
  JsonArray chosen;
  for (const Json& tool : tools.get_array()) {
    if (names.contains(tool_name_of(tool))) chosen.push_back(tool);
  }
  return Json(std::move(chosen));
}

// {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [...]}}
ApiResult<Ok> allow_tools(const JsonObject& choice, ChatConstraint& constraint) {
  RequestFields outer(choice, "tool_choice.");
  const JsonObject* allowed = TRY(outer.object("allowed_tools"));
  RequestFields fields(allowed != nullptr ? *allowed : choice, "tool_choice.allowed_tools.");
  const std::string mode = TRY(fields.text("mode")).value_or("auto");
  if (mode != "auto" && mode != "required") {
    return bad_field("tool_choice",
                     "the \"mode\" of allowed tools can be \"auto\" or \"required\"");
  }
  const Json* list = fields.get("tools");
  if (list == nullptr || !list->is_array() || list->get_array().empty()) {
    return bad_field("tool_choice", "\"allowed_tools\" needs a list of \"tools\"");
  }
  if (list->get_array().size() > kToolsMax) {
    return bad_field("tool_choice",
                     fmt::format("\"allowed_tools\" may have at most {} tools, not {}", kToolsMax,
                                 list->get_array().size()));
  }
  std::set<std::string> names;
  for (const Json& tool : list->get_array()) names.insert(tool_name_of(tool));
  constraint.tools = TRY(only_these(constraint.tools, names));
  if (mode == "required") constraint.calls = CallChoice::kRequired;
  return Ok{};
}

ApiResult<Ok> apply_choice(const Json& choice, ChatConstraint& constraint) {
  if (choice == Json("auto")) return Ok{};
  if (choice == Json("none")) {
    constraint.calls = CallChoice::kNone;
    constraint.hides_tools = true;
    return Ok{};
  }
  const JsonObject* object = choice.if_object();
  const Json* type = object != nullptr ? object->if_contains("type") : nullptr;
  const bool is_named = type != nullptr && *type == Json("function");
  const bool is_allowed = type != nullptr && *type == Json("allowed_tools");
  if (choice != Json("required") && !is_named && !is_allowed) {
    return bad_field("tool_choice",
                     "\"tool_choice\" can be \"none\", \"auto\", \"required\", {\"type\": "
                     "\"function\", \"function\": {\"name\": ...}} or {\"type\": "
                     "\"allowed_tools\", ...}");
  }
  if (constraint.tools.is_null()) {
    return bad_field("tool_choice", "\"tool_choice\" asks for a call, and there are no \"tools\"");
  }
  if (is_allowed) return allow_tools(*object, constraint);
  if (is_named) constraint.tools = TRY(only_these(constraint.tools, {tool_name_of(choice)}));
  constraint.calls = CallChoice::kRequired;
  return Ok{};
}

Json schema_part(const Json& schema, bool is_strict, const char* field) {
  return JsonObject{{"json_schema", plain_schema(schema)}, {"strict", is_strict}, {"of", field}};
}

bool is_schema(const Json* schema) {
  return schema != nullptr && (schema->is_object() || schema->is_bool());
}

ApiResult<std::optional<Json>> response_format(RequestFields& fields) {
  constexpr const char* kField = "response_format";
  const JsonObject* format = TRY(fields.object(kField));
  if (format == nullptr) return std::optional<Json>();
  RequestFields inner(*format, "response_format.");
  const std::string type = TRY(inner.text("type")).value_or("");
  if (type == "text") return std::optional<Json>();
  if (type == "json_object") {
    const Json* schema = inner.get("schema");
    if (is_schema(schema)) return std::optional(schema_part(*schema, false, kField));
    return std::optional<Json>(JsonObject{{"json_object", true}});
  }
  if (type != "json_schema") {
    return bad_field(kField,
                     "the \"type\" of \"response_format\" can be \"text\", \"json_object\" or "
                     "\"json_schema\"");
  }
  const JsonObject* named = TRY(inner.object("json_schema"));
  RequestFields given(named != nullptr ? *named : *format, "response_format.json_schema.");
  const Json* schema = given.get("schema");
  if (!is_schema(schema)) {
    return bad_field(kField, "\"response_format\" needs a JSON schema as \"json_schema.schema\"");
  }
  const bool is_strict = TRY(given.boolean("strict")).value_or(false);
  return std::optional(schema_part(*schema, is_strict, kField));
}

ApiResult<Json> schema_field(RequestFields& fields, const char* key, const Json& value) {
  if (is_schema(&value)) return schema_part(value, false, key);
  if (value.is_string()) {
    const auto parsed = parse_untrusted_json(value.get_string());
    if (parsed.ok() && is_schema(&parsed.value())) return schema_part(parsed.value(), false, key);
  }
  return bad_field(fields.name(key), fmt::format("\"{}\" must be a JSON schema", fields.name(key)));
}

ApiResult<Json> choice_field(RequestFields& fields, const char* key, const Json& value) {
  const Json* list = &value;
  const bool is_list = list->is_array() && !list->get_array().empty() &&
                       list->get_array().size() <= kGuidedChoicesMax;
  JsonArray texts;
  if (is_list) {
    for (const Json& text : list->get_array()) {
      if (text.is_string()) texts.push_back(JsonObject{{"text", text}});
    }
  }
  if (is_list && texts.size() == list->get_array().size()) {
    return Json(JsonObject{{"choice", std::move(texts)}});
  }
  return bad_field(fields.name(key), fmt::format("\"{}\" must be a list of 1 to {} strings",
                                                 fields.name(key), kGuidedChoicesMax));
}

// Reads those of `keys` {schema, regex, grammar, choice} that the request has.
ApiResult<Ok> guided_parts(RequestFields& fields, const std::vector<const char*>& keys,
                           std::vector<Json>& parts) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const Json* value = keys[i] != nullptr ? fields.get(keys[i]) : nullptr;
    if (value == nullptr) continue;
    if (i == 0) {
      parts.push_back(TRY(schema_field(fields, keys[i], *value)));
    } else if (i == 3) {
      parts.push_back(TRY(choice_field(fields, keys[i], *value)));
    } else {
      const std::string text = TRY(fields.text(keys[i])).value_or("");
      if (text.empty()) continue;  // llama.cpp's clients send this for "none"
      parts.push_back(JsonObject{{i == 1 ? "regex" : "ebnf", text}});
    }
  }
  return Ok{};
}

}  // namespace

ApiResult<ChatConstraint> parse_tool_choice(RequestFields& fields, const Json& tools) {
  ChatConstraint constraint;
  constraint.tools = tools;
  const Json* choice = fields.get("tool_choice");
  constraint.is_parallel = TRY(fields.boolean("parallel_tool_calls")).value_or(true);
  if (choice != nullptr) TRY(apply_choice(*choice, constraint));
  return constraint;
}

ApiResult<std::optional<Json>> parse_answer_form(RequestFields& fields) {
  std::vector<Json> parts;
  if (auto part = TRY(response_format(fields))) parts.push_back(std::move(*part));
  TRY(guided_parts(fields, {"json_schema", nullptr, "grammar"}, parts));
  TRY(guided_parts(fields, {"guided_json", "guided_regex", "guided_grammar", "guided_choice"},
                   parts));
  if (const JsonObject* object = TRY(fields.object("structured_outputs"))) {
    RequestFields inner(*object, "structured_outputs.");
    TRY(guided_parts(inner, {"json", "regex", "grammar", "choice"}, parts));
    const Json* json_object = inner.get("json_object");
    if (json_object != nullptr && *json_object == Json(true)) {
      parts.push_back(JsonObject{{"json_object", true}});
    }
  }
  if (parts.size() > 1) {
    return bad_field("response_format",
                     "the request constrains the answer in more than one way; keep only one of "
                     "\"response_format\", \"json_schema\", \"grammar\", \"guided_...\" and "
                     "\"structured_outputs\"");
  }
  if (parts.empty()) return std::optional<Json>();
  return std::optional<Json>(std::move(parts.front()));
}

ApiResult<MadeConstraint> make_constraint(const AnswerOptions& options,
                                          const Tokenizer& tokenizer) {
  auto text = answer_constraint(options);
  auto warnings = text.ok() ? check_constraint(text.value(), tokenizer)
                            : Result<std::vector<std::string>>(text.error());
  if (warnings.ok()) return MadeConstraint{std::move(text.value()), std::move(warnings.value())};
  const Error& error = warnings.error();
  const bool is_free = options.calls == CallChoice::kAuto && !options.answer;
  const bool is_strict =
      is_free && options.tools != nullptr &&
      std::any_of(options.tools->get_array().begin(), options.tools->get_array().end(),
                  [](const Json& tool) {
                    const Json* function = find(tool, "function");
                    const Json* strict = function != nullptr ? find(*function, "strict") : nullptr;
                    return strict != nullptr && *strict == Json(true);
                  });
  // Neither a call nor a strict schema was requested.
  if (is_free && !is_strict) {
    return MadeConstraint{"", {fmt::format("calls are not constrained: {}", error.message)}};
  }
  const char* field =
      options.answer && error.message.find("the parameters of") != 0 ? "response_format" : "tools";
  if (error.code == ErrorCode::kUnsupported) return unsupported_field(field, error.message);
  return bad_field(field, error.message);
}

}  // namespace lockstep
