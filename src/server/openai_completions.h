// POST /v1/completions: the request's body as a struct (pure), and its answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_server.h"
#include "server/generation_options.h"
#include "server/text_inputs.h"

namespace lockstep {

class ApiContext;

inline constexpr int kCompletionTokensDefault = 16;  // as OpenAI's

struct CompletionRequest {
  std::vector<TextInput> prompts;  // at least one
  bool echoes = false;
  std::optional<std::string> suffix{};  // what follows the answer; not with token ids or echo
  GenerationOptions options;
};

ApiResult<CompletionRequest> parse_completion_request(std::string_view body);

void serve_completion(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
