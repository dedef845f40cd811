// The rules of a constraint for the calls of some tools, in a family's format. Part of
// answer_constraint.h; pure.
#pragma once

#include "base/result.h"
#include "chat/tool_format.h"
#include "json/json.h"

namespace lockstep {

// Adds the rules "calls" (from the first to the last, as a whole answer has them) and "announced
// calls" (behind any text: what one marker begins). `tools` in OpenAI's form, not empty; `rules`
// has a "gap". kUnsupported where a name cannot be written.
Status add_call_rules(const ToolFormat& format, const Json& tools, bool is_parallel,
                      JsonObject& rules);

}  // namespace lockstep
