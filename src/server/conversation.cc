#include "server/conversation.h"

#include <string>
#include <utility>

namespace lockstep {

void append_text(std::string& so_far, std::string_view text, std::string_view between) {
  if (!so_far.empty() && !text.empty() && so_far.back() != '\n') so_far += between;
  so_far += text;
}

void Conversation::add_reasoning(std::string_view text) {
  JsonObject& message = message_of("assistant");
  Json& reasoning = message["reasoning_content"];
  std::string joined = reasoning.is_string() ? std::string(reasoning.get_string()) : std::string();
  append_text(joined, text, "\n");
  reasoning = joined;
}

void Conversation::add_call(std::string_view id, std::string_view name, Json arguments) {
  Json& calls = message_of("assistant")["tool_calls"];
  if (calls.is_null()) calls.emplace_array();
  calls.get_array().push_back(
      JsonObject{{"id", id},
                 {"type", "function"},
                 {"function", JsonObject{{"name", name}, {"arguments", std::move(arguments)}}}});
}

void Conversation::add_result(std::string_view id, std::string_view text) {
  messages_.push_back(JsonObject{{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
}

bool Conversation::ends_with(std::string_view role) const {
  return !messages_.empty() && messages_.back().at("role") == Json(role);
}

bool Conversation::ends_with_calls() const {
  return !messages_.empty() && find(messages_.back(), "tool_calls") != nullptr;
}

std::string_view Conversation::last_text() const {
  const Json* content = messages_.empty() ? nullptr : find(messages_.back(), "content");
  if (content == nullptr || !content->is_string()) return {};
  return {content->get_string().data(), content->get_string().size()};
}

JsonObject& Conversation::message_of(std::string_view role) {
  if (!ends_with(role)) messages_.push_back(JsonObject{{"role", role}});
  return messages_.back().get_object();
}

void Conversation::add_text(std::string_view role, std::string_view text,
                            std::string_view between) {
  Json& content = message_of(role)["content"];
  std::string joined = content.is_string() ? std::string(content.get_string()) : std::string();
  append_text(joined, text, between);
  content = joined;
}

}  // namespace lockstep
