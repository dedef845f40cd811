#include "server/chat/conversation.h"

#include <string>
#include <utility>

namespace lockstep {
namespace {

template <class Text>
void append_with_separator(Text& so_far, std::string_view text, std::string_view between) {
  if (!so_far.empty() && !text.empty() && so_far.back() != '\n') so_far.append(between);
  so_far.append(text);
}

// In place: a message may have as many parts as a body can hold.
void append_to(Json& field, std::string_view text, std::string_view between) {
  append_with_separator(field.is_string() ? field.get_string() : field.emplace_string(), text,
                        between);
}

}  // namespace

void append_text(std::string& so_far, std::string_view text, std::string_view between) {
  append_with_separator(so_far, text, between);
}

void Conversation::add_reasoning(std::string_view text) {
  append_to(message_of("assistant")["reasoning_content"], text, "\n");
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
  append_to(message_of(role)["content"], text, between);
}

}  // namespace lockstep
