// Tools for a model whose chat template knows none: they are told in the system message, with the
// format that `generic` (chat/tool_format.h) reads, and calls and their results become texts. Used
// by ChatFormat; pure.
#pragma once

#include "json/json.h"

namespace lockstep {

// `messages` and `tools` as API clients send them, both lists. The result has no tool_calls and no
// role "tool".
Json with_tools_as_text(const Json& messages, const Json& tools);

}  // namespace lockstep
