#include "server/chat/conversation.h"

#include <doctest/doctest.h>

#include <string>

namespace lockstep {
namespace {

// How often a message's text is reallocated, which copies all of it, while this many parts are
// appended.
int moves_of(int parts) {
  Conversation conversation;
  const char* place = nullptr;
  int moves = 0;
  for (int i = 0; i < parts; ++i) {
    conversation.add_user("12345678");
    const char* now = conversation.last_text().data();
    moves += now == place ? 0 : 1;
    place = now;
  }
  return moves;
}

}  // namespace

TEST_CASE("parts of one role are one message, with separators between them") {
  Conversation conversation;
  conversation.add_system("a");
  conversation.add_system("");
  conversation.add_system("b\n");
  conversation.add_system("c");
  CHECK(conversation.last_text() == "a\nb\nc");
  conversation.add_assistant("x");
  conversation.add_reasoning("1");
  conversation.add_assistant("y");
  conversation.add_reasoning("2");
  const JsonArray messages = conversation.take();
  REQUIRE(messages.size() == 2);
  CHECK(messages[1] ==
        Json(JsonObject{{"role", "assistant"}, {"content", "xy"}, {"reasoning_content", "1\n2"}}));
}

TEST_CASE("a message with very many parts is not copied for each of them") {
  CHECK(moves_of(20'000) <= 32);
}

}  // namespace lockstep
