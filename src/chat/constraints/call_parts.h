// The rules of a constraint for the calls of some tools, in a family's format. Part of
// answer_constraint.h; pure.
#pragma once

#include "base/result.h"
#include "chat/constraints/answer_constraint.h"
#include "json/json.h"

namespace lockstep {

// Adds the rules "calls" (all calls of an answer that has nothing else) and "announced calls"
// (after any text: the calls that one marker starts). The tools are not empty; `rules` has a "gap".
// kUnsupported if a name cannot be written.
Status add_call_rules(const AnswerOptions& options, JsonObject& rules);

}  // namespace lockstep
