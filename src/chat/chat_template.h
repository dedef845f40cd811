// A model's chat template: parsed once, then rendered for each conversation. Used by the server
// and `lockstep template`. The object is immutable, so any thread may render. It renders what it is
// given; what API clients send is first put into the template's form by chat/normalise.h.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "chat/jinja_ast.h"
#include "chat/marked_text.h"
#include "json/json.h"

namespace lockstep {

// Objects of a conversation whose JSON is to be written exactly so, where a template writes it
// without options.
using JsonTexts = std::unordered_map<const JsonObject*, std::string>;

struct ChatTemplateInput {
  const Json* messages = nullptr;                 // never null when rendering
  const JsonTexts* json_texts = nullptr;          // of objects in the messages; null: none
  const Json* tools = nullptr;                    // null: none
  const JsonObject* model_variables = nullptr;    // bos_token...: part of the template's own text
  const JsonObject* request_variables = nullptr;  // what a request sets; marked as input
  bool add_generation_prompt = true;              // request_variables may say otherwise
  std::tm now = {};
};

class ChatTemplate {
 public:
  // kCorrupt with the line where the source breaks the syntax.
  static Result<ChatTemplate> parse(std::string_view source);

  // kInvalidArgument: the template refuses the conversation, the message is the template's own.
  // kUnsupported: an expression makes no sense for these values. kExhausted: a limit was reached.
  // The last two name the template's line.
  Result<std::vector<PromptPiece>> render(const ChatTemplateInput& input) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const JinjaProgram> program);

  std::shared_ptr<const JinjaProgram> program_;
};

std::string prompt_text(const std::vector<PromptPiece>& pieces);

std::tm local_time_now();
// "2025-09-07T08:05:03", with the day of the week and of the year worked out.
Result<std::tm> parse_time(std::string_view text);

}  // namespace lockstep
