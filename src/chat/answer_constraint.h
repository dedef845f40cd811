// The constraint of decoding for an answer, made from the same ToolFormat as the parser of what is
// then written (chat/output_parser.h): every text that it allows is one that the parser reads as it
// was meant. Pure; the text is compiled by grammar/constraint.h.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "chat/tool_format.h"
#include "json/json.h"

namespace lockstep {

enum class CallChoice {
  kNone,      // no call, and no marker of one
  kAuto,      // text and calls
  kRequired,  // at least one call, and nothing but calls
};

enum class ReasoningState {
  kClosed,   // there is none, or the prompt has ended it
  kMayOpen,  // the answer may begin with it
  kOpen,     // the prompt ends inside of it
};

struct AnswerOptions {
  const ToolFormat* format = nullptr;  // null: neither calls nor reasoning
  // In OpenAI's form, those that may be called; null or empty: none.
  const Json* tools = nullptr;
  CallChoice calls = CallChoice::kAuto;
  bool is_parallel = true;  // more than one call
  ReasoningState reasoning = ReasoningState::kMayOpen;
  bool continues_text = false;  // the prompt ends inside the answer's text
  // What the answer's text must be, as a part of a constraint; nullopt: any text.
  std::optional<Json> answer;
};

// kUnsupported where a tool's name cannot be written in the format.
Result<std::string> answer_constraint(const AnswerOptions& options);

}  // namespace lockstep
