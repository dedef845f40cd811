// Converts tools of the Responses API to the form of chat completions. Pure.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"
#include "server/request/errors.h"
#include "server/request/request_fields.h"

namespace lockstep {

// Reads "tools", "tool_choice" and "parallel_tool_calls" and writes them to `chat`. Tools other
// than functions run at OpenAI or need its models; Codex always offers some, so they are dropped
// and named in `ignored`.
ApiResult<Ok> parse_response_tools(RequestFields& fields, JsonObject& chat,
                                   std::vector<std::string>& ignored);

}  // namespace lockstep
