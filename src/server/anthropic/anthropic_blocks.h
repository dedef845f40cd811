// Converts the content blocks of Anthropic's messages to a Conversation. Pure.
#pragma once

#include <string>

#include "json/json.h"
#include "server/chat/conversation.h"
#include "server/request/errors.h"

namespace lockstep {

// `system`: a text or text blocks; may be null. Claude Code starts it with a billing line of its
// own that differs between requests and means nothing to a model. Left out, because with it no
// prompt would match a prefix cache.
ApiResult<std::string> parse_system(const Json* value);

// "messages": at least one of role user, assistant or system.
ApiResult<Ok> add_messages(Conversation& conversation, const Json* value);

}  // namespace lockstep
