// The decoding constraint for an answer, made from the same ToolFormat as the output parser
// (chat/calls/output_parser.h), so that the parser reads every text it allows as intended. Pure;
// grammar/constraint.h compiles the result.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "chat/tools/tool_format.h"
#include "chat/tools/tool_set.h"
#include "json/json.h"

namespace lockstep {

enum class CallChoice {
  kNone,      // no call, and no marker of one
  kAuto,      // text and calls
  kRequired,  // at least one call, and nothing but calls
};

enum class ReasoningState {
  kClosed,   // none, or the prompt has ended it
  kMayOpen,  // the answer may begin with it
  kOpen,     // the prompt ends inside it
};

struct AnswerOptions {
  const ToolFormat* format = nullptr;  // null: neither calls nor reasoning
  // The callable tools in OpenAI's form; null or empty: none.
  const Json* tools = nullptr;
  // Their parameters' types, shared with the output parser; null: derived from `tools`.
  std::shared_ptr<const ToolSet> tool_types;
  CallChoice calls = CallChoice::kAuto;
  bool is_parallel = true;  // more than one call
  ReasoningState reasoning = ReasoningState::kMayOpen;
  bool continues_text = false;  // the prompt ends inside the answer's text
  // A part of a constraint that the answer's text must match; nullopt: any text.
  std::optional<Json> answer;

  std::shared_ptr<const ToolSet> known_tools() const;  // `tools` is not null
};

// kUnsupported if a tool's name cannot be written in the format.
Result<std::string> answer_constraint(const AnswerOptions& options);

}  // namespace lockstep
