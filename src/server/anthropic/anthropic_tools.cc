#include "server/anthropic/anthropic_tools.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "server/chat/chat_messages.h"

namespace lockstep {
namespace {

// A tool's fields other than its name, description and schema.
ApiResult<Ok> check_tool_options(RequestFields& fields, const std::string& param) {
  const std::string type = TRY(fields.text("type")).value_or("custom");
  if (type != "custom") {
    return unsupported_field(
        param + ".type",
        fmt::format("\"{}\": tools of type \"{}\" are not supported, only those with an "
                    "\"input_schema\" that the client runs itself",
                    param, type.substr(0, 64)));
  }
  [[maybe_unused]] const JsonObject* cached = TRY(fields.object("cache_control"));
  TRY(fields.boolean("eager_input_streaming"));  // input always comes as it is written
  TRY(fields.boolean("defer_loading"));  // there is no tool search here: all are shown at once
  TRY(fields.refuse("input_examples", {Json(JsonArray())}));
  TRY(fields.refuse("allowed_callers", {Json(JsonArray{"direct"})}));
  return Ok{};
}

ApiResult<Json> parse_tool(const Json& tool, const std::string& param) {
  if (!tool.is_object()) return bad_field(param, fmt::format("\"{}\" must be an object", param));
  RequestFields fields(tool.get_object(), param + ".");
  TRY(check_tool_options(fields, param));
  const std::string name = TRY(fields.text("name")).value_or("");
  if (name.empty()) return bad_field(param, fmt::format("\"{}.name\" is required", param));
  const JsonObject* schema = TRY(fields.object("input_schema"));
  if (schema == nullptr) {
    return bad_field(param, fmt::format("\"{}.input_schema\" is required", param));
  }
  JsonObject function{{"name", name}};
  if (const auto description = TRY(fields.text("description"))) {
    function["description"] = *description;
  }
  function["parameters"] = *schema;
  if (const auto strict = TRY(fields.boolean("strict"))) function["strict"] = *strict;
  return Json(JsonObject{{"type", "function"}, {"function", std::move(function)}});
}

bool has_tool_named(const JsonArray& tools, std::string_view name) {
  return std::any_of(tools.begin(), tools.end(), [&](const Json& tool) {
    return std::string_view(tool.at("function").at("name").get_string()) == name;
  });
}

// {"type": "auto" | "any" | "tool" | "none", "name"} as OpenAI's "tool_choice".
ApiResult<Json> parse_anthropic_choice(RequestFields& fields, const JsonArray& tools) {
  const std::string type = TRY(fields.text("type")).value_or("");
  const std::string name = TRY(fields.text("name")).value_or("");
  if (type == "auto" || type == "none") return Json(type);
  if (type != "any" && type != "tool") {
    return bad_field("tool_choice.type", "\"tool_choice.type\" must be auto, any, tool or none");
  }
  if (tools.empty()) {
    return bad_field("tool_choice", fmt::format("\"tool_choice\" is \"{}\" without tools", type));
  }
  if (type == "any") return Json("required");
  if (!has_tool_named(tools, name)) {
    return bad_field("tool_choice.name",
                     fmt::format("\"tool_choice.name\" is \"{}\", which is not one of the tools",
                                 name.substr(0, 64)));
  }
  return Json(JsonObject{{"type", "function"}, {"function", JsonObject{{"name", name}}}});
}

}  // namespace

ApiResult<Ok> parse_claude_tools(RequestFields& fields, JsonObject& chat) {
  JsonArray tools;
  const Json* given = fields.get("tools");
  if (given != nullptr && !given->is_array()) {
    return bad_field("tools", "\"tools\" must be an array");
  }
  const JsonArray none;
  const JsonArray& all = given != nullptr ? given->get_array() : none;
  TRY(check_tool_count(all.size()));
  for (const Json& tool : all) {
    TRY(check_work());
    tools.push_back(TRY(parse_tool(tool, fmt::format("tools[{}]", tools.size()))));
  }
  if (const JsonObject* choice = TRY(fields.object("tool_choice"))) {
    RequestFields inner(*choice, "tool_choice.");
    chat["tool_choice"] = TRY(parse_anthropic_choice(inner, tools));
    if (TRY(inner.boolean("disable_parallel_tool_use")).value_or(false)) {
      chat["parallel_tool_calls"] = false;
    }
  }
  if (!tools.empty()) chat["tools"] = std::move(tools);
  return Ok{};
}

}  // namespace lockstep
