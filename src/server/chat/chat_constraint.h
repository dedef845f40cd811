// The form that a request demands of its answer (tool_choice, parallel_tool_calls, response_format
// and similar fields) and the decoding constraint that results. Used by chat_plan.h; pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chat/constraints/answer_constraint.h"
#include "server/request/request_fields.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

struct ChatConstraint {
  CallChoice calls = CallChoice::kAuto;
  bool is_parallel = true;
  Json tools;                  // that may be called, in OpenAI's form; null: none
  bool hides_tools = false;    // tool_choice is "none"
  std::optional<Json> answer;  // that the text must match, as a part of grammar/constraint.h
};

// tool_choice and parallel_tool_calls of a request with these tools (null: none).
ApiResult<ChatConstraint> parse_tool_choice(RequestFields& fields, const Json& tools);

// response_format and other servers' names for it: json_schema, grammar, guided_json, guided_regex,
// guided_grammar, guided_choice, structured_outputs. At most one of them.
ApiResult<std::optional<Json>> parse_answer_form(RequestFields& fields);

// Sent with the request to the model.
struct MadeConstraint {
  std::string text;                   // empty: unconstrained
  std::vector<std::string> warnings;  // requested but not enforced
};

// 400 if no answer can satisfy it, and for strict schemas that cannot be enforced.
ApiResult<MadeConstraint> make_constraint(const AnswerOptions& options, const Tokenizer& tokenizer);

}  // namespace lockstep
