// The messages and tools of a chat request, checked: whatever passes, a chat template can read.
// Pure.
#pragma once

#include "json/json.h"
#include "server/errors.h"

namespace lockstep {

// As sent, but without fields that are null or an empty list of tool calls, which clients write for
// "none". At least one message. `value` may be null: the field is missing.
ApiResult<Json> parse_messages(const Json* value);

// A null value if there are no tools.
ApiResult<Json> parse_tools(const Json* value);

}  // namespace lockstep
