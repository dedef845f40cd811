// A chat request of any API to what is generated: the prompt through the model's template, its
// limits, and how the model's output is read. The APIs differ in how they fill a ChatRequest and in
// how they tell the answer; all between is here. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chat/output_parser.h"
#include "chat/sampled_calls.h"
#include "json/json.h"
#include "node/model_service.h"
#include "server/chat_constraint.h"
#include "server/chat_prompt.h"
#include "server/errors.h"
#include "server/generation.h"
#include "server/generation_options.h"

namespace lockstep {

struct ChatRequest {
  Json messages;                  // an array, at least one, in OpenAI's form
  Json tools;                     // an array; null: none, or none to be shown to the model
  ChatConstraint constraint;      // what the answer may be
  JsonObject template_variables;  // chat_template_kwargs
  std::optional<std::string> reasoning_effort;
  std::optional<bool> thinks;  // reasons before it answers; nullopt: as the template likes
  // What the template does not know of the two above is left out, see unknown_hints(); else
  // refused.
  bool reasoning_is_hint = false;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  GenerationOptions options;
};

struct ChatPlan {
  GenerationPlan generation;
  std::vector<OutputParser::Options> parsers;  // of each choice
  // What the request asks for and the answer is not held to; told in a header.
  std::vector<std::string> warnings;
};

// 400 where the template refuses the conversation or is missing where it is needed.
ApiResult<ChatPrompt> make_chat_prompt(const ChatRequest& request, const ModelService& model,
                                       const SampledCalls& sampled);

// 400 context_length_exceeded unless at least one token fits behind the prompt; 400 for what no
// answer can be held to.
ApiResult<ChatPlan> plan_chat(const ChatRequest& request, const ModelService& model,
                              ChatPrompt prompt);

// Which of "thinking" and "effort" a request asks for in vain.
std::vector<std::string> unknown_hints(const ChatRequest& request, const ModelService& model);

}  // namespace lockstep
