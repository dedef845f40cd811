#include "server/ollama/ollama_messages.h"

#include <fmt/core.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/request/request_fields.h"

namespace lockstep {
namespace {

// Calls without a result yet, in order; each is added and taken once.
class OpenCalls {
 public:
  void add(std::string id, const std::string& name) {
    by_id_[id].push_back(calls_.size());
    by_name_[name].push_back(calls_.size());
    order_.push_back(calls_.size());
    calls_.push_back({std::move(id), true});
  }
  // Takes the first open call and returns its id; nullopt: there is none.
  std::optional<std::string> take() { return take_first(order_); }
  std::optional<std::string> take_with_id(const std::string& id) { return take_of(by_id_, id); }
  std::optional<std::string> take_named(const std::string& name) { return take_of(by_name_, name); }

 private:
  struct Call {
    std::string id;
    bool is_open;
  };
  using Places = std::deque<size_t>;  // of calls_
  using PlacesOf = std::map<std::string, Places>;

  std::optional<std::string> take_of(PlacesOf& places, const std::string& key) {
    const auto found = places.find(key);
    return found == places.end() ? std::nullopt : take_first(found->second);
  }
  std::optional<std::string> take_first(Places& places) {
    while (!places.empty()) {
      Call& call = calls_[places.front()];
      places.pop_front();
      if (std::exchange(call.is_open, false)) return call.id;
    }
    return std::nullopt;
  }

  std::vector<Call> calls_;
  Places order_;
  PlacesOf by_id_;
  PlacesOf by_name_;
};

std::string text_of(const JsonObject& object, std::string_view key) {
  const Json* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

class MessageReader {
 public:
  ApiResult<Json> read(const Json& value) {
    if (!value.is_object()) return value;  // parse_messages() reports the error
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
  // Nine letters and digits: accepted by every template that checks ids.
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
    open_.add(std::move(id), text_of(called, "name"));
  }

  // Ollama's clients identify a result by the tool's name: it answers the first open call of that
  // tool.
  void complete_result(JsonObject& message, const std::string& name) {
    if (!name.empty() && message.if_contains("name") == nullptr) message["name"] = name;
    const std::string told = text_of(message, "tool_call_id");
    if (!told.empty()) {
      open_.take_with_id(told);
      return;
    }
    auto id = name.empty() ? std::nullopt : open_.take_named(name);
    if (!id) id = open_.take();
    message["tool_call_id"] = id ? *id : next_id();
  }

  size_t count_ = 0;
  size_t made_ = 0;
  OpenCalls open_;  // at most the request's calls
};

}  // namespace

ApiResult<Json> openai_messages(const Json* value) {
  if (value == nullptr) return Json(JsonArray());
  if (!value->is_array()) return bad_field("messages", "\"messages\" must be an array");
  JsonArray messages;
  MessageReader reader;
  for (const Json& one : value->get_array()) {
    TRY(check_work());
    messages.push_back(TRY(reader.read(one)));
  }
  return Json(std::move(messages));
}

ApiResult<Ok> refuse_images(const Json* images, const std::string& param) {
  if (images == nullptr || images->is_null()) return Ok{};
  if (images->is_array() && images->get_array().empty()) return Ok{};
  return unsupported_field(param,
                           "images are not supported: lockstep computes the text part of models");
}

}  // namespace lockstep
