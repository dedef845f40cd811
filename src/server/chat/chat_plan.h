// Plans the generation for a chat request of any API: the prompt through the model's template, its
// limits, and how to parse the output. The APIs differ only in how they fill a ChatRequest and
// write the answer. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chat/calls/output_parser.h"
#include "chat/calls/sampled_calls.h"
#include "json/json.h"
#include "node/models/model_service.h"
#include "server/chat/chat_constraint.h"
#include "server/chat/chat_prompt.h"
#include "server/generation/generation.h"
#include "server/generation/generation_options.h"
#include "server/request/errors.h"

namespace lockstep {

struct ChatRequest {
  Json messages;                  // an array, at least one, in OpenAI's form
  Json tools;                     // an array; null: none, or hidden from the model
  ChatConstraint constraint;      // on the answer
  JsonObject template_variables;  // chat_template_kwargs
  std::optional<std::string> reasoning_effort;
  std::optional<bool> thinks;  // reasons before it answers; nullopt: the template decides
  // True: if the template does not know one of the two above, it is ignored, see unknown_hints();
  // else the request is refused.
  bool reasoning_is_hint = false;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  GenerationOptions options;
};

struct ChatPlan {
  GenerationPlan generation;
  std::vector<OutputParser::Options> parsers;  // one per choice
  // Requested but not enforced; sent in a header.
  std::vector<std::string> warnings;
};

// 400 if the template rejects the conversation, or is needed and missing.
ApiResult<ChatPrompt> make_chat_prompt(const ChatRequest& request, const ModelService& model,
                                       const SampledCalls& sampled);

// 400 context_length_exceeded unless at least one token fits after the prompt; 400 for constraints
// that cannot be enforced.
ApiResult<ChatPlan> plan_chat(const ChatRequest& request, const ModelService& model,
                              ChatPrompt prompt);

// Those of "thinking" and "effort" that the request asks for and the template ignores.
std::vector<std::string> unknown_hints(const ChatRequest& request, const ModelService& model);

}  // namespace lockstep
