// Conversation: messages in OpenAI's form, built from the finer parts of other APIs. Consecutive
// parts of one role become one message, as templates expect. Used by the request parsers; one
// thread.
#pragma once

#include <string_view>

#include "json/json.h"

namespace lockstep {

class Conversation {
 public:
  void add_system(std::string_view text) { add_text("system", text, "\n"); }
  void add_user(std::string_view text) { add_text("user", text, "\n"); }
  // Pieces of a model's text: joined without a separator.
  void add_assistant(std::string_view text) { add_text("assistant", text, ""); }
  void add_reasoning(std::string_view text);
  void add_call(std::string_view id, std::string_view name, Json arguments);
  void add_result(std::string_view id, std::string_view text);

  bool empty() const { return messages_.empty(); }
  bool ends_with(std::string_view role) const;
  bool ends_with_calls() const;
  std::string_view last_text() const;  // of the last message; empty if it has none

  JsonArray take() { return std::move(messages_); }

 private:
  JsonObject& message_of(
      std::string_view role);  // the last one if it has this role, else a new one
  void add_text(std::string_view role, std::string_view text, std::string_view between);

  JsonArray messages_;
};

// Appends `text`, after `between` if both are non-empty and `so_far` does not end a line.
void append_text(std::string& so_far, std::string_view text, std::string_view between);

}  // namespace lockstep
