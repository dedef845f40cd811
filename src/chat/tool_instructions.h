// Tools for a model whose chat template has no support for them: the system message describes them
// and the format `generic` (chat/tools/tool_format.h), and calls and results become texts. Used by
// ChatFormat; pure.
#pragma once

#include "json/json.h"

namespace lockstep {

// `messages` and `tools` as API clients send them, both lists. The result has no tool_calls and no
// role "tool".
Json with_tools_as_text(const Json& messages, const Json& tools);

}  // namespace lockstep
