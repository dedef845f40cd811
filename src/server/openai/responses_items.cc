#include "server/openai/responses_items.h"

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "server/request/request_fields.h"

namespace lockstep {
namespace {

std::string item_name(const std::string& param, size_t index) {
  return fmt::format("{}[{}]", param, index);
}

// A required field of an item.
ApiResult<std::string> item_field(RequestFields& fields, const char* key) {
  auto text = TRY(fields.text(key));
  if (text) return std::move(*text);
  return bad_field(fields.name(key), fmt::format("\"{}\" is required", fields.name(key)));
}

ApiResult<std::string> part_text(const Json& part, const std::string& param) {
  if (!part.is_object()) return bad_field(param, fmt::format("\"{}\" must be an object", param));
  RequestFields fields(part.get_object(), param + ".");
  const std::string type = TRY(item_field(fields, "type"));
  if (type == "refusal") return item_field(fields, "refusal");
  for (const char* known :
       {"input_text", "output_text", "text", "summary_text", "reasoning_text"}) {
    if (type == known) return item_field(fields, "text");
  }
  if (type == "input_image") {
    return unsupported_field(
        param, fmt::format("\"{}\": images are not supported: lockstep computes the text part of "
                           "models",
                           param));
  }
  return unsupported_field(param, fmt::format("\"{}\": parts of type \"{}\" are not supported",
                                              param, type.substr(0, 64)));
}

// A text or parts of one, with `between` between them; may be null.
ApiResult<std::string> item_text(const Json* content, const std::string& param,
                                 std::string_view between) {
  std::string text;
  if (content == nullptr) return text;
  if (content->is_string()) return std::string(content->get_string());
  if (!content->is_array()) {
    return bad_field(param, fmt::format("\"{}\" must be a string or an array of parts", param));
  }
  size_t index = 0;
  for (const Json& part : content->get_array()) {
    TRY(check_work());
    append_text(text, TRY(part_text(part, item_name(param, index++))), between);
  }
  return text;
}

ApiResult<Ok> add_item_message(Conversation& conversation, RequestFields& fields,
                               const std::string& param) {
  const std::string role = TRY(item_field(fields, "role"));
  const bool is_own = role == "assistant";
  const std::string text =
      TRY(item_text(fields.get("content"), param + ".content", is_own ? "" : "\n"));
  if (role == "user") {
    conversation.add_user(text);
  } else if (is_own) {
    conversation.add_assistant(text);
  } else if (role == "system" || role == "developer") {
    conversation.add_system(text);
  } else {
    return bad_field(
        param + ".role",
        fmt::format("\"{}.role\" must be user, assistant, system or developer", param));
  }
  return Ok{};
}

// Falls back to the summary if the client has not kept the content.
ApiResult<Ok> add_reasoning(Conversation& conversation, RequestFields& fields,
                            const std::string& param) {
  std::string text = TRY(item_text(fields.get("content"), param + ".content", "\n"));
  if (text.empty()) {
    text = TRY(item_text(fields.get("summary"), param + ".summary", "\n"));
  }
  if (!text.empty()) conversation.add_reasoning(text);
  return Ok{};
}

ApiResult<Ok> add_item(Conversation& conversation, const Json& item, const std::string& param) {
  if (!item.is_object()) return bad_field(param, fmt::format("\"{}\" must be an object", param));
  RequestFields fields(item.get_object(), param + ".");
  const std::string type = TRY(fields.text("type")).value_or("message");
  if (type == "message") return add_item_message(conversation, fields, param);
  if (type == "reasoning") return add_reasoning(conversation, fields, param);
  if (type == "function_call") {
    const std::string id = TRY(item_field(fields, "call_id"));
    const std::string name = TRY(item_field(fields, "name"));
    if (name.empty()) return bad_field(param + ".name", "the name of a call is empty");
    conversation.add_call(id, name, Json(TRY(item_field(fields, "arguments"))));
    return Ok{};
  }
  if (type == "function_call_output") {
    const std::string id = TRY(item_field(fields, "call_id"));
    conversation.add_result(id, TRY(item_text(fields.get("output"), param + ".output", "\n")));
    return Ok{};
  }
  return unsupported_field(
      param + ".type",
      fmt::format("\"{}\": items of type \"{}\" are not supported", param, type.substr(0, 64)));
}

}  // namespace

ApiResult<Ok> add_input(Conversation& conversation, const Json* value) {
  if (value == nullptr) return bad_field("input", "\"input\" is required");
  if (value->is_string()) {
    conversation.add_user(value->get_string());
    return Ok{};
  }
  if (!value->is_array()) {
    return bad_field("input", "\"input\" must be a string or an array of items");
  }
  size_t index = 0;
  for (const Json& item : value->get_array()) {
    TRY(check_work());
    TRY(add_item(conversation, item, item_name("input", index++)));
  }
  return Ok{};
}

}  // namespace lockstep
