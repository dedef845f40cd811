#include "server/ollama_messages.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/request_fields.h"

namespace lockstep {
namespace {

// A call that has no result yet.
struct OpenCall {
  std::string id;
  std::string name;
};

std::string text_of(const JsonObject& object, std::string_view key) {
  const Json* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

class MessageReader {
 public:
  ApiResult<Json> read(const Json& value) {
    if (!value.is_object()) return value;  // parse_messages() says what is wrong
    const std::string param = fmt::format("messages[{}]", count_++);
    TRY(refuse_images(find(value, "images"), param + ".images"));
    JsonObject message;
    for (const auto& field : value.get_object()) {
      const std::string_view key(field.key().data(), field.key().size());
      const bool is_ours = key == "images" || key == "tool_name";
      if (!is_ours) message.insert(field);
    }
    if (message.if_contains("content") == nullptr) message["content"] = "";
    if (Json* calls = message.if_contains("tool_calls"); calls != nullptr && calls->is_array()) {
      for (Json& call : calls->get_array()) complete_call(call);
    }
    const JsonObject& given = value.get_object();
    if (text_of(given, "role") == "tool") complete_result(message, text_of(given, "tool_name"));
    return Json(std::move(message));
  }

 private:
  // Nine letters and digits, which every template takes that looks at ids.
  std::string next_id() { return fmt::format("call{:05}", made_++ % 100'000); }

  void complete_call(Json& call) {
    if (!call.is_object()) return;
    JsonObject& object = call.get_object();
    if (object.if_contains("type") == nullptr) object["type"] = "function";
    std::string id = text_of(object, "id");
    if (id.empty()) object["id"] = id = next_id();
    Json* function = object.if_contains("function");
    if (function == nullptr || !function->is_object()) return;
    JsonObject& called = function->get_object();
    called.erase("index");
    if (called.if_contains("arguments") == nullptr) called["arguments"] = JsonObject();
    open_.push_back({std::move(id), text_of(called, "name")});
  }

  // Ollama's clients tell a result by the tool's name, so that it answers the first call of that
  // tool which has none yet.
  void complete_result(JsonObject& message, const std::string& name) {
    if (!name.empty() && message.if_contains("name") == nullptr) message["name"] = name;
    const std::string told = text_of(message, "tool_call_id");
    auto call = std::find_if(open_.begin(), open_.end(), [&](const OpenCall& one) {
      return told.empty() ? name.empty() || one.name == name : one.id == told;
    });
    if (call == open_.end() && told.empty()) call = open_.begin();
    if (call != open_.end()) {
      message["tool_call_id"] = call->id;
      open_.erase(call);
    } else if (told.empty()) {
      message["tool_call_id"] = next_id();
    }
  }

  size_t count_ = 0;
  size_t made_ = 0;
  std::vector<OpenCall> open_;  // no more than the request has calls
};

}  // namespace

ApiResult<Json> openai_messages(const Json* value) {
  if (value == nullptr) return Json(JsonArray());
  if (!value->is_array()) return bad_field("messages", "\"messages\" must be an array");
  JsonArray messages;
  MessageReader reader;
  for (const Json& one : value->get_array()) messages.push_back(TRY(reader.read(one)));
  return Json(std::move(messages));
}

ApiResult<Ok> refuse_images(const Json* images, const std::string& param) {
  if (images == nullptr || images->is_null()) return Ok{};
  if (images->is_array() && images->get_array().empty()) return Ok{};
  return unsupported_field(param,
                           "images are not supported: lockstep computes the text part of models");
}

}  // namespace lockstep
