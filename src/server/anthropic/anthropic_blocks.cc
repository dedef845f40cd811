#include "server/anthropic/anthropic_blocks.h"

#include <fmt/core.h>

#include <string_view>

#include "server/request/request_fields.h"

namespace lockstep {
namespace {

constexpr std::string_view kBillingLine = "x-anthropic-billing-header:";

ApiError unsupported_block(const std::string& type, const std::string& param) {
  if (type == "image") {
    return unsupported_field(
        param, fmt::format("\"{}\": images are not supported: lockstep computes the text part of "
                           "models",
                           param));
  }
  return unsupported_field(param, fmt::format("\"{}\": blocks of type \"{}\" are not supported",
                                              param, type.substr(0, 64)));
}

// A required field of a block.
ApiResult<std::string> block_field(RequestFields& fields, const char* key) {
  auto text = TRY(fields.text(key));
  if (text) return std::move(*text);
  return bad_field(fields.name(key), fmt::format("\"{}\" is required", fields.name(key)));
}

// The text of a plain document; other sources would first have to be fetched or decoded.
ApiResult<std::string> document_text(RequestFields& fields, const std::string& param) {
  const JsonObject* source = TRY(fields.object("source"));
  if (source == nullptr) return bad_field(param, fmt::format("\"{}.source\" is required", param));
  RequestFields inner(*source, param + ".source.");
  const std::string type = TRY(block_field(inner, "type"));
  if (type != "text") return unsupported_block("document (" + type + ")", param);
  std::string text = TRY(fields.text("title")).value_or("");
  append_text(text, TRY(fields.text("context")).value_or(""), "\n");
  append_text(text, TRY(block_field(inner, "data")), "\n");
  return text;
}

// The text of a text or document block.
ApiResult<std::string> block_text(RequestFields& fields, const std::string& type,
                                  const std::string& param) {
  if (type == "text") return block_field(fields, "text");
  if (type == "document") return document_text(fields, param);
  return unsupported_block(type, param);
}

ApiResult<const JsonObject*> block_object(const Json& block, const std::string& param) {
  if (block.is_object()) return &block.get_object();
  return bad_field(param, fmt::format("\"{}\" must be an object", param));
}

std::string block_name(const std::string& param, size_t index) {
  return fmt::format("{}[{}]", param, index);
}

ApiError no_content(const std::string& param) {
  return bad_field(param, fmt::format("\"{}\" must be a string or an array of blocks", param));
}

std::string_view without_billing_line(std::string_view text) {
  if (!text.starts_with(kBillingLine)) return text;
  const size_t end = text.find('\n');
  return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
}

// A text or text blocks; may be null.
ApiResult<std::string> block_text(const Json* content, const std::string& param,
                                  std::string_view (*take)(std::string_view)) {
  std::string text;
  if (content == nullptr) return text;
  if (content->is_string()) return std::string(take(content->get_string()));
  if (!content->is_array()) return no_content(param);
  size_t index = 0;
  for (const Json& block : content->get_array()) {
    TRY(check_work());
    const std::string name = block_name(param, index++);
    RequestFields fields(*TRY(block_object(block, name)), name + ".");
    const std::string type = TRY(block_field(fields, "type"));
    append_text(text, take(TRY(block_text(fields, type, name))), "\n");
  }
  return text;
}

ApiResult<Ok> add_result(Conversation& conversation, RequestFields& fields,
                         const std::string& param) {
  const std::string id = TRY(block_field(fields, "tool_use_id"));
  std::string text = TRY(block_text(fields.get("content"), param + ".content",
                                    [](std::string_view all) { return all; }));
  // Templates have no field for this, and the model should not have to guess it.
  if (TRY(fields.boolean("is_error")).value_or(false) && !text.starts_with("Error")) {
    text.insert(0, text.empty() ? "Error" : "Error: ");
  }
  conversation.add_result(id, text);
  return Ok{};
}

ApiResult<Ok> add_user_block(Conversation& conversation, const Json& block,
                             const std::string& param) {
  RequestFields fields(*TRY(block_object(block, param)), param + ".");
  const std::string type = TRY(block_field(fields, "type"));
  if (type == "tool_result") return add_result(conversation, fields, param);
  conversation.add_user(TRY(block_text(fields, type, param)));
  return Ok{};
}

ApiResult<Ok> add_assistant_block(Conversation& conversation, const Json& block,
                                  const std::string& param) {
  RequestFields fields(*TRY(block_object(block, param)), param + ".");
  const std::string type = TRY(block_field(fields, "type"));
  if (type == "thinking") {
    conversation.add_reasoning(TRY(block_field(fields, "thinking")));
  } else if (type == "tool_use") {
    const std::string id = TRY(block_field(fields, "id"));
    const std::string name = TRY(block_field(fields, "name"));
    const JsonObject* input = TRY(fields.object("input"));
    if (name.empty() || input == nullptr) {
      return bad_field(param, fmt::format("\"{}\" must have a \"name\" and an \"input\"", param));
    }
    conversation.add_call(id, name, Json(*input));
  } else if (type == "text") {
    conversation.add_assistant(TRY(block_field(fields, "text")));
  } else if (type != "redacted_thinking") {  // only its writer can read that
    return unsupported_block(type, param);
  }
  return Ok{};
}

ApiResult<Ok> add_block_message(Conversation& conversation, const Json& message,
                                const std::string& param) {
  RequestFields fields(*TRY(block_object(message, param)), param + ".");
  const std::string role = TRY(block_field(fields, "role"));
  const Json* content = fields.get("content");
  const std::string name = param + ".content";
  if (role == "system") {
    conversation.add_system(TRY(block_text(content, name, without_billing_line)));
    return Ok{};
  }
  const bool is_user = role == "user";
  if (!is_user && role != "assistant") {
    return bad_field(param + ".role",
                     fmt::format("\"{}.role\" must be user, assistant or system", param));
  }
  if (content != nullptr && content->is_string()) {
    const std::string_view text = content->get_string();
    is_user ? conversation.add_user(text) : conversation.add_assistant(text);
    return Ok{};
  }
  if (content == nullptr || !content->is_array()) return no_content(name);
  size_t index = 0;
  for (const Json& block : content->get_array()) {
    TRY(check_work());
    const std::string place = block_name(name, index++);
    TRY(is_user ? add_user_block(conversation, block, place)
                : add_assistant_block(conversation, block, place));
  }
  return Ok{};
}

}  // namespace

ApiResult<std::string> parse_system(const Json* value) {
  return block_text(value, "system", without_billing_line);
}

ApiResult<Ok> add_messages(Conversation& conversation, const Json* value) {
  if (value == nullptr) return bad_field("messages", "\"messages\" is required");
  if (!value->is_array() || value->get_array().empty()) {
    return bad_field("messages", "\"messages\" must be a non-empty array");
  }
  size_t index = 0;
  for (const Json& message : value->get_array()) {
    TRY(check_work());
    TRY(add_block_message(conversation, message, block_name("messages", index++)));
  }
  return Ok{};
}

}  // namespace lockstep
