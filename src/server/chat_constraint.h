// What a request says that its answer must be: tool_choice, parallel_tool_calls, response_format
// and the like, and the constraint of decoding that they come to. Used by chat_plan.h; pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chat/answer_constraint.h"
#include "server/request_fields.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

struct ChatConstraint {
  CallChoice calls = CallChoice::kAuto;
  bool is_parallel = true;
  Json tools;                  // those that may be called, in OpenAI's form; null: none
  bool hides_tools = false;    // tool_choice is "none"
  std::optional<Json> answer;  // what the text must be, as a part of grammar/constraint.h
};

// tool_choice and parallel_tool_calls, of a request with these tools (null: none).
ApiResult<ChatConstraint> parse_tool_choice(RequestFields& fields, const Json& tools);

// response_format and what other servers have for the same: json_schema, grammar, guided_json,
// guided_regex, guided_grammar, guided_choice, structured_outputs. At most one of them.
ApiResult<std::optional<Json>> parse_answer_form(RequestFields& fields);

// What travels with the request.
struct MadeConstraint {
  std::string text;                   // empty: the answer is free
  std::vector<std::string> warnings;  // what is asked for and not enforced
};

// 400 for what no answer can be, and for strict schemas that cannot be enforced.
ApiResult<MadeConstraint> make_constraint(const AnswerOptions& options, const Tokenizer& tokenizer);

}  // namespace lockstep
