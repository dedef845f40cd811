// Converts the input items of OpenAI's Responses API to a Conversation. Pure.
#pragma once

#include "json/json.h"
#include "server/chat/conversation.h"
#include "server/request/errors.h"

namespace lockstep {

// "input": a text, or items: messages, reasoning, calls of functions and their outputs.
ApiResult<Ok> add_input(Conversation& conversation, const Json* value);

}  // namespace lockstep
