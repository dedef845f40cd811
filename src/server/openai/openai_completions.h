// POST /v1/completions: parses the request's body (pure) and answers it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_server.h"
#include "server/generation/generation_options.h"
#include "server/request/text_inputs.h"

namespace lockstep {

class ApiContext;

inline constexpr int kCompletionTokensDefault = 16;  // as OpenAI's

struct CompletionRequest {
  std::vector<TextInput> prompts;  // at least one
  bool echoes = false;
  std::optional<std::string> suffix{};  // that follows the answer; not with token ids or echo
  GenerationOptions options;
};

ApiResult<CompletionRequest> parse_completion_request(std::string_view body);

void serve_completion(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
