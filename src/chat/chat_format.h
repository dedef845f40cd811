// ChatFormat: one model's format for conversations: its parsed templates, and how their input must
// differ from the API's form. Made once when a model is loaded; immutable, any thread.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/sampled_calls.h"
#include "chat/normalise.h"
#include "chat/template_file.h"
#include "chat/tools/tool_format.h"

namespace lockstep {

// A conversation as API clients send it.
struct ChatInput {
  const Json* messages = nullptr;         // never null
  const Json* tools = nullptr;            // null: none
  const SampledCalls* sampled = nullptr;  // model-written calls in the messages; null: none
  const JsonObject* variables = nullptr;  // the request's, for the template; null: none
  bool add_generation_prompt = true;      // false with continue_final_message
  bool continue_final_message = false;    // the prompt ends with the last message's text
  std::tm now = {};
};

class ChatFormat {
 public:
  // kCorrupt with the line in the template.
  static Result<std::shared_ptr<const ChatFormat>> parse(const TemplateSource& source);

  // Errors as ChatTemplate::render; kInvalidArgument also if the final message cannot be continued.
  Result<std::vector<PromptPiece>> write(const ChatInput& input) const;

  // How the model writes calls and reasoning. "generic" if the template does not reveal it; null if
  // there are no tools and the template has no reasoning.
  const ToolFormat* tool_format(bool has_tools) const;
  // Whether the template ends the prompt inside the model's reasoning.
  bool opens_reasoning(const std::vector<PromptPiece>& prompt) const;
  // Whether the template ends the prompt after closed, usually empty reasoning.
  bool closes_reasoning(const std::vector<PromptPiece>& prompt) const;

  std::string_view text() const { return text_; }  // of the template, or of both in sequence
  // Whether the template's text has this word, so that a variable of this name may matter.
  bool mentions(std::string_view word) const { return text_.find(word) != std::string::npos; }

 private:
  struct Variant {
    ChatTemplate chat_template;
    TemplateNeeds needs;
  };

  explicit ChatFormat(const TemplateSource& source);

  std::string text_;
  const ToolFormat* tool_format_;  // null: the template does not reveal it
  bool knows_tools_;               // the template shows them
  JsonObject tokens_;
  std::vector<Variant> variants_;  // without tools, with tools; a single one serves both
};

}  // namespace lockstep
