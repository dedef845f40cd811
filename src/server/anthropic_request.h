// The body of POST /v1/messages and /v1/messages/count_tokens, checked and put into the form that
// all chat APIs share. Pure.
#pragma once

#include <string_view>

#include "server/chat_plan.h"
#include "server/errors.h"

namespace lockstep {

struct MessagesRequest {
  ChatRequest chat;
  bool shows_thinking = true;  // false: the text of the reasoning is left out of the answer
  bool tells_edits = false;    // the answer says which edits of the context were applied: none
};

enum class MessagesRoute { kMessages, kCountTokens };

// Fields that Anthropic defines are understood or refused by name; others are in
// chat.options.ignored.
ApiResult<MessagesRequest> parse_messages_request(std::string_view body, MessagesRoute route);

}  // namespace lockstep
