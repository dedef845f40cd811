// The input of OpenAI's Responses API, which comes in items, to a Conversation. Pure.
#pragma once

#include "json/json.h"
#include "server/conversation.h"
#include "server/errors.h"

namespace lockstep {

// "input": a text, or items: messages, reasoning, calls of functions and their outputs.
ApiResult<Ok> add_input(Conversation& conversation, const Json* value);

}  // namespace lockstep
