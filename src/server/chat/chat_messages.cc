#include "server/chat/chat_messages.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "server/request/request_fields.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

ApiResult<Ok> check_part(const Json& part, const std::string& param) {
  if (!part.is_object()) return bad_field(param, "a content part must be an object");
  RequestFields fields(part.get_object(), param + ".");
  const std::string type = TRY(fields.text("type")).value_or("");
  if (type == "image_url" || type == "input_image" || type == "image") {
    return unsupported_field(param,
                             "images are not supported: lockstep computes the text part of models");
  }
  if (type != "text") {
    return unsupported_field(
        param, fmt::format("content parts of type \"{}\" are not supported yet, only \"text\"",
                           type.substr(0, 64)));
  }
  if (!TRY(fields.text("text"))) return bad_field(param, "a text part must have a \"text\"");
  return Ok{};
}

ApiResult<Ok> check_content(const Json* content, const std::string& param) {
  if (content == nullptr || content->is_string()) return Ok{};
  if (!content->is_array()) {
    return bad_field(param, "a message's \"content\" must be a string, null or an array of parts");
  }
  for (const Json& part : content->get_array()) TRY(check_part(part, param));
  return Ok{};
}

// {"type": "function", "function": {"name": ..., ...}}: a tool or a call of one. Returns its
// function.
ApiResult<const JsonObject*> find_function(const Json& value, const std::string& param) {
  if (!value.is_object()) return bad_field(param, fmt::format("\"{}\" must be an object", param));
  RequestFields fields(value.get_object(), param + ".");
  const std::string type = TRY(fields.text("type")).value_or("function");
  if (type != "function") {
    return unsupported_field(
        param + ".type", fmt::format("tools of type \"{}\" are not supported, only \"function\"",
                                     type.substr(0, 64)));
  }
  const JsonObject* function = TRY(fields.object("function"));
  const std::string name = param + ".function";
  if (function == nullptr) return bad_field(name, fmt::format("\"{}\" is required", name));
  RequestFields inner(*function, name + ".");
  if (TRY(inner.text("name")).value_or("").empty()) {
    return bad_field(name + ".name", fmt::format("\"{}.name\" is required", name));
  }
  return function;
}

ApiResult<Ok> check_call(const Json& call, const std::string& param) {
  const JsonObject* function = TRY(find_function(call, param));
  RequestFields fields(call.get_object(), param + ".");
  TRY(fields.text("id"));
  RequestFields inner(*function, param + ".function.");
  const Json* arguments = inner.get("arguments");
  if (arguments == nullptr || arguments->is_string() || arguments->is_object()) return Ok{};
  return bad_field(inner.name("arguments"),
                   fmt::format("\"{}\" must be a string with JSON", inner.name("arguments")));
}

ApiResult<Ok> check_calls(const Json* calls, const std::string& param) {
  if (calls == nullptr) return Ok{};
  if (!calls->is_array()) return bad_field(param, fmt::format("\"{}\" must be an array", param));
  size_t index = 0;
  for (const Json& call : calls->get_array()) {
    TRY(check_call(call, fmt::format("{}[{}]", param, index++)));
  }
  return Ok{};
}

ApiResult<Json> parse_message(const Json& value, const std::string& param) {
  if (!value.is_object()) return bad_field(param, "a message must be an object");
  RequestFields fields(value.get_object(), param + ".");
  const std::string role = TRY(fields.text("role")).value_or("");
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    return bad_field(param + ".role",
                     "a message's \"role\" must be system, developer, user, assistant or tool");
  }
  TRY(check_content(fields.get("content"), param + ".content"));
  TRY(check_calls(fields.get("tool_calls"), param + ".tool_calls"));
  for (const char* key : {"name", "tool_call_id", "reasoning_content", "reasoning", "thinking"}) {
    TRY(fields.text(key));
  }
  TRY(fields.refuse("function_call"));
  TRY(fields.refuse("audio"));
  JsonObject message;
  for (const auto& field : value.get_object()) {
    const bool is_no_calls = field.key() == "tool_calls" && field.value().is_array() &&
                             field.value().get_array().empty();
    if (!field.value().is_null() && !is_no_calls) message.insert(field);
  }
  return Json(std::move(message));
}

}  // namespace

ApiResult<Json> parse_messages(const Json* value) {
  if (value == nullptr) return bad_field("messages", "\"messages\" is required");
  if (!value->is_array() || value->get_array().empty()) {
    return bad_field("messages", "\"messages\" must be a non-empty array");
  }
  JsonArray messages;
  for (const Json& one : value->get_array()) {
    TRY(check_work());
    messages.push_back(TRY(parse_message(one, fmt::format("messages[{}]", messages.size()))));
  }
  return Json(std::move(messages));
}

ApiResult<Ok> check_tool_count(size_t count) {
  if (count <= kToolsMax) return Ok{};
  return bad_field("tools",
                   fmt::format("\"tools\" may have at most {} tools, not {}", kToolsMax, count));
}

ApiResult<Json> parse_tools(const Json* value) {
  if (value == nullptr) return Json();
  if (!value->is_array()) return bad_field("tools", "\"tools\" must be an array");
  TRY(check_tool_count(value->get_array().size()));
  size_t index = 0;
  for (const Json& tool : value->get_array()) {
    const std::string param = fmt::format("tools[{}]", index++);
    const JsonObject* function = TRY(find_function(tool, param));
    RequestFields fields(*function, param + ".function.");
    TRY(fields.text("description"));
    [[maybe_unused]] const JsonObject* parameters = TRY(fields.object("parameters"));
    TRY(fields.boolean("strict"));
  }
  return value->get_array().empty() ? Json() : *value;
}

}  // namespace lockstep
