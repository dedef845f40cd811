// The messages and tools of a chat request, checked so that a chat template can read them. Pure.
#pragma once

#include "json/json.h"
#include "server/request/errors.h"

namespace lockstep {

// As sent, without null fields and empty lists of tool calls, which clients send for "none". At
// least one message. `value` may be null: the field is missing.
ApiResult<Json> parse_messages(const Json* value);

// Tools per request: many more than any model can tell apart.
inline constexpr size_t kToolsMax = 1024;

// 400 if there are more.
ApiResult<Ok> check_tool_count(size_t count);

// A null value if there are no tools.
ApiResult<Json> parse_tools(const Json* value);

}  // namespace lockstep
