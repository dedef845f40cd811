// The body of POST /v1/messages and /v1/messages/count_tokens, checked and converted to the form
// that all chat APIs share. Pure.
#pragma once

#include <string_view>

#include "server/chat/chat_plan.h"
#include "server/request/errors.h"

namespace lockstep {

struct MessagesRequest {
  ChatRequest chat;
  bool shows_thinking = true;  // false: the text of the reasoning is left out of the answer
  bool tells_edits = false;    // the answer lists the context edits applied: none
};

enum class MessagesRoute { kMessages, kCountTokens };

// Fields that Anthropic defines are read or refused by name; others are listed in
// chat.options.ignored.
ApiResult<MessagesRequest> parse_messages_request(std::string_view body, MessagesRoute route);

}  // namespace lockstep
