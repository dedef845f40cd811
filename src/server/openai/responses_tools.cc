#include "server/openai/responses_tools.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "server/chat/chat_messages.h"

namespace lockstep {
namespace {

// {"type": "function", "name", "description", "parameters", "strict"}
ApiResult<Json> parse_function(RequestFields& fields, const std::string& param) {
  const std::string name = TRY(fields.text("name")).value_or("");
  if (name.empty()) {
    return bad_field(param + ".name", fmt::format("\"{}.name\" is required", param));
  }
  JsonObject function{{"name", name}};
  if (const auto description = TRY(fields.text("description"))) {
    function["description"] = *description;
  }
  if (const JsonObject* parameters = TRY(fields.object("parameters"))) {
    function["parameters"] = *parameters;
  }
  if (const auto strict = TRY(fields.boolean("strict"))) function["strict"] = *strict;
  TRY(fields.boolean("defer_loading"));  // there is no tool search here: all are shown at once
  return Json(JsonObject{{"type", "function"}, {"function", std::move(function)}});
}

// A kind of tool, in characters that a header may have.
std::string header_name(const std::string& type) {
  std::string name = "tools.";
  for (const char c : type.substr(0, 64)) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    name += is_plain ? c : '_';
  }
  return name;
}

// {"type": "allowed_tools", "mode", "tools": [{"type": "function", "name"}]}
ApiResult<Json> parse_allowed(RequestFields& fields) {
  JsonArray allowed;
  const Json* tools = fields.get("tools");
  const JsonArray none;
  const JsonArray& named = tools != nullptr && tools->is_array() ? tools->get_array() : none;
  TRY(check_tool_count(named.size()));
  for (const Json& tool : named) {
    const Json* name = find(tool, "name");
    if (name == nullptr || !name->is_string()) {
      return unsupported_field("tool_choice.tools",
                               "\"tool_choice.tools\" can name functions only");
    }
    allowed.push_back(JsonObject{{"type", "function"}, {"function", JsonObject{{"name", *name}}}});
  }
  const std::string mode = TRY(fields.text("mode")).value_or("auto");
  return Json(JsonObject{{"type", "allowed_tools"},
                         {"allowed_tools", {{"mode", mode}, {"tools", std::move(allowed)}}}});
}

ApiResult<Json> parse_responses_choice(const Json& choice) {
  if (!choice.is_object()) return choice;  // "auto", "none", "required" or a mistake
  RequestFields fields(choice.get_object(), "tool_choice.");
  const std::string type = TRY(fields.text("type")).value_or("");
  if (type == "allowed_tools") return parse_allowed(fields);
  if (type != "function") {
    return unsupported_field("tool_choice",
                             fmt::format("\"tool_choice\" of type \"{}\" is not supported, only "
                                         "functions",
                                         type.substr(0, 64)));
  }
  const std::string name = TRY(fields.text("name")).value_or("");
  if (name.empty()) return bad_field("tool_choice.name", "\"tool_choice.name\" is required");
  return Json(JsonObject{{"type", type}, {"function", JsonObject{{"name", name}}}});
}

}  // namespace

ApiResult<Ok> parse_response_tools(RequestFields& fields, JsonObject& chat,
                                   std::vector<std::string>& ignored) {
  const Json* given = fields.get("tools");
  if (given != nullptr && !given->is_array()) {
    return bad_field("tools", "\"tools\" must be an array");
  }
  const JsonArray none;
  const JsonArray& all = given != nullptr ? given->get_array() : none;
  TRY(check_tool_count(all.size()));
  JsonArray tools;
  std::vector<std::string> unknown;  // kinds of tools
  size_t index = 0;
  for (const Json& tool : all) {
    TRY(check_work());
    const std::string param = fmt::format("tools[{}]", index++);
    if (!tool.is_object()) return bad_field(param, fmt::format("\"{}\" must be an object", param));
    RequestFields inner(tool.get_object(), param + ".");
    const std::string type = TRY(inner.text("type")).value_or("");
    if (type.empty()) {
      return bad_field(param + ".type", fmt::format("\"{}.type\" is required", param));
    }
    if (type == "function") {
      tools.push_back(TRY(parse_function(inner, param)));
    } else if (unknown.size() < kIgnoredFieldsMax) {
      std::string name = header_name(type);
      const bool is_new = std::find(unknown.begin(), unknown.end(), name) == unknown.end();
      if (is_new) unknown.push_back(std::move(name));
    }
  }
  ignored.insert(ignored.end(), unknown.begin(), unknown.end());
  const bool has_tools = !tools.empty();
  if (has_tools) chat["tools"] = std::move(tools);
  if (const Json* choice = fields.get("tool_choice")) {
    chat["tool_choice"] = TRY(parse_responses_choice(*choice));
  }
  const auto is_parallel = TRY(fields.boolean("parallel_tool_calls"));
  if (is_parallel && has_tools) chat["parallel_tool_calls"] = *is_parallel;
  return Ok{};
}

}  // namespace lockstep
