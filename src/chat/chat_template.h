// A model's chat template: parsed once, then rendered for each conversation. Used by the server and
// `lockstep template`. Immutable, so any thread may render. Clients' messages are first converted
// to the template's form by chat/normalise.h.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/jinja_syntax/jinja_ast.h"
#include "chat/text/json_texts.h"
#include "chat/text/marked_text.h"
#include "json/json.h"

namespace lockstep {

struct ChatTemplateInput {
  const Json* messages = nullptr;                 // never null when rendering
  const JsonTexts* json_texts = nullptr;          // of objects in the messages; null: none
  const Json* tools = nullptr;                    // null: none
  const JsonObject* model_variables = nullptr;    // bos_token...: part of the template's own text
  const JsonObject* request_variables = nullptr;  // set by the request; marked as input
  bool add_generation_prompt = true;              // request_variables may override it
  std::tm now = {};
  // Budget of template steps shared by this and other renderings; null: the limit of a single
  // rendering.
  int64_t* steps_left = nullptr;
};

class ChatTemplate {
 public:
  // kCorrupt with the line of a syntax error.
  static Result<ChatTemplate> parse(std::string_view source);

  // kInvalidArgument: the template rejects the conversation, with the template's own message.
  // kUnsupported: an expression is invalid for its values. kExhausted: a limit was reached. The
  // last two name the template's line.
  Result<std::vector<PromptPiece>> render(const ChatTemplateInput& input) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Program> program);

  std::shared_ptr<const jinja::Program> program_;
};

std::string prompt_text(const std::vector<PromptPiece>& pieces);

std::tm local_time_now();
// "2025-09-07T08:05:03"; fills in the day of the week and of the year.
Result<std::tm> parse_time(std::string_view text);

}  // namespace lockstep
