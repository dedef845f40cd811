// ChatFormat: how one model wants conversations written: its templates, parsed, and what they want
// instead of what the API says. Made once when a model is loaded; immutable, any thread.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/normalise.h"
#include "chat/sampled_calls.h"
#include "chat/template_file.h"
#include "chat/tool_format.h"

namespace lockstep {

// A conversation as API clients send it.
struct ChatInput {
  const Json* messages = nullptr;         // never null
  const Json* tools = nullptr;            // null: none
  const SampledCalls* sampled = nullptr;  // calls in the messages that models wrote; null: none
  const JsonObject* variables = nullptr;  // that the request sets for the template; null: none
  bool add_generation_prompt = true;      // false with continue_final_message
  bool continue_final_message = false;    // the prompt ends with the last message's text
  std::tm now = {};
};

class ChatFormat {
 public:
  // kCorrupt with the template's line.
  static Result<std::shared_ptr<const ChatFormat>> parse(const TemplateSource& source);

  // Errors are those of ChatTemplate::render; kInvalidArgument also where the final message cannot
  // be continued.
  Result<std::vector<PromptPiece>> write(const ChatInput& input) const;

  // How the model writes calls and reasoning. "generic" where the template does not tell; null
  // where there is nothing to look for: no tools, and a template that knows no reasoning.
  const ToolFormat* tool_format(bool has_tools) const;
  // Whether a prompt ends inside the model's reasoning, because its template has begun it.
  bool opens_reasoning(const std::vector<PromptPiece>& prompt) const;
  // Whether it ends behind reasoning that its template has ended, usually an empty one.
  bool closes_reasoning(const std::vector<PromptPiece>& prompt) const;

  std::string_view text() const {
    return text_;
  }  // of the template, or of both one behind the other
  // Whether the template's text has this word, so that setting such a variable may matter.
  bool mentions(std::string_view word) const { return text_.find(word) != std::string::npos; }

 private:
  struct Variant {
    ChatTemplate chat_template;
    TemplateNeeds needs;
  };

  explicit ChatFormat(const TemplateSource& source);

  std::string text_;
  const ToolFormat* tool_format_;  // null: the template does not tell
  bool knows_tools_;               // the template shows them
  JsonObject tokens_;
  std::vector<Variant> variants_;  // without tools, with tools; one of them alone may do for both
};

}  // namespace lockstep
