#include "chat/tool_instructions.h"

#include <string>
#include <utility>

namespace lockstep {
namespace {

std::string content_text(const Json* content) {
  if (!content) return "";
  if (content->is_string()) return std::string(content->get_string());
  std::string text;
  if (!content->is_array()) return text;
  for (const Json& part : content->get_array()) text += content_text(find(part, "text"));
  return text;
}

std::string instructions(const Json& tools) {
  std::string text = "You can call these functions:\n";
  for (const Json& tool : tools.get_array()) {
    const Json* function = find(tool, "function");
    text += dump_json(function ? *function : tool) + "\n";
  }
  return text +
         "To call one, answer with nothing but JSON in this form:\n"
         "{\"name\": \"FUNCTION\", \"arguments\": {\"PARAMETER\": VALUE}}\n"
         "To call several, answer with a list of such objects. You are then given the results. "
         "Where no function helps, answer in words.";
}

Json call_of(const Json& call) {
  const Json* function = find(call, "function");
  const Json* name = function ? find(*function, "name") : nullptr;
  const Json* arguments = function ? find(*function, "arguments") : nullptr;
  Json value = arguments ? *arguments : Json(JsonObject());
  if (value.is_string()) {
    auto parsed = parse_untrusted_json(value.get_string());
    if (parsed.ok()) value = std::move(parsed.value());
  }
  return JsonObject{{"name", name ? *name : Json("")}, {"arguments", std::move(value)}};
}

// An assistant's message with its calls as text.
Json told_calls(const Json& message, const Json& calls) {
  JsonArray list;
  for (const Json& call : calls.get_array()) list.push_back(call_of(call));
  std::string text = content_text(find(message, "content"));
  if (!text.empty()) text += "\n";
  text += dump_json(list.size() == 1 ? list.front() : Json(list));
  JsonObject told = message.get_object();
  told.erase("tool_calls");
  told["content"] = text;
  return told;
}

void add_result(JsonArray& messages, const Json& message, bool follows_result) {
  const std::string result = "Result of the call:\n" + content_text(find(message, "content"));
  if (follows_result) {
    // In place: there may be very many results.
    messages.back().get_object()["content"].get_string().append("\n\n").append(result);
  } else {
    messages.push_back(JsonObject{{"role", "user"}, {"content", result}});
  }
}

}  // namespace

Json with_tools_as_text(const Json& messages, const Json& tools) {
  if (!messages.is_array() || !tools.is_array()) return messages;
  JsonArray told;
  std::string system = instructions(tools);
  bool follows_result = false;
  for (const Json& message : messages.get_array()) {
    const Json* role = find(message, "role");
    const Json* calls = find(message, "tool_calls");
    const bool is_result = role && *role == Json("tool");
    const bool is_system = role && (*role == Json("system") || *role == Json("developer"));
    if (is_result) {
      add_result(told, message, follows_result);
    } else if (calls && calls->is_array()) {
      told.push_back(told_calls(message, *calls));
    } else if (is_system && told.empty()) {
      system = content_text(find(message, "content")) + "\n\n" + system;
    } else {
      told.push_back(message);
    }
    follows_result = is_result;
  }
  told.insert(told.begin(), JsonObject{{"role", "system"}, {"content", system}});
  return told;
}

}  // namespace lockstep
