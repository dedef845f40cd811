// POST /v1/chat/completions: the request's body as a struct (pure), and its answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/http_server.h"
#include "server/generation_options.h"

namespace lockstep {

class ApiContext;

struct ChatMessage {
  std::string role;
  std::string text;  // parts joined
};

struct ChatRequest {
  std::vector<ChatMessage> messages;  // at least one
  GenerationOptions options;
};

ApiResult<ChatRequest> parse_chat_request(std::string_view body);

// The text that the model continues. Chat templates do not exist yet: it is the plain concatenation
// of the messages' texts, joined with newlines, without any mark of who spoke.
std::string chat_prompt(const ChatRequest& request);

void serve_chat(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
