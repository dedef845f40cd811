// POST /v1/chat/completions: the request's body as a struct (pure), and its answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "json/json.h"
#include "net/http_server.h"
#include "server/generation_options.h"

namespace lockstep {

class ApiContext;

struct ChatRequest {
  Json messages;                  // an array, at least one
  Json tools;                     // an array; null: none, or none to be shown to the model
  JsonObject template_variables;  // chat_template_kwargs
  std::optional<std::string> reasoning_effort;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  GenerationOptions options;
};

ApiResult<ChatRequest> parse_chat_request(std::string_view body);

void serve_chat(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
