// Tools of the Responses API in the form of chat completions. Pure.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"
#include "server/errors.h"
#include "server/request_fields.h"

namespace lockstep {

// Reads "tools", "tool_choice" and "parallel_tool_calls" and writes them to `chat`. Tools that are
// no functions run at OpenAI or need its models; Codex always offers some, so they are left out and
// named in `ignored`.
ApiResult<Ok> parse_response_tools(RequestFields& fields, JsonObject& chat,
                                   std::vector<std::string>& ignored);

}  // namespace lockstep
