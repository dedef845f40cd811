// The content of Anthropic's messages, which comes in blocks, to a Conversation. Pure.
#pragma once

#include <string>

#include "json/json.h"
#include "server/conversation.h"
#include "server/errors.h"

namespace lockstep {

// `system`: a text or text blocks; may be null. Claude Code begins it with a line of its own for
// billing that differs from one request to the next and says nothing to a model: it is left out,
// since behind it nothing of the prompt would be found in a cache.
ApiResult<std::string> parse_system(const Json* value);

// "messages": at least one of role user, assistant or system.
ApiResult<Ok> add_messages(Conversation& conversation, const Json* value);

}  // namespace lockstep
