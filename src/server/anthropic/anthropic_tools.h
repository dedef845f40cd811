// Tools of Anthropic's API in OpenAI's form. Pure.
#pragma once

#include "json/json.h"
#include "server/request/errors.h"
#include "server/request/request_fields.h"

namespace lockstep {

// Reads "tools" and "tool_choice" and writes "tools", "tool_choice" and "parallel_tool_calls".
// Tools that run on Anthropic's own machines are refused by name.
ApiResult<Ok> parse_claude_tools(RequestFields& fields, JsonObject& chat);

}  // namespace lockstep
