// POST /v1/completions: parses the request's body (pure) and answers it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "net/http/http_server.h"
#include "server/generation/generation.h"
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
ApiResult<CompletionRequest> parse_completion_fields(const JsonObject& body);
// 400 if a prompt does not fit the model.
ApiResult<GenerationPlan> plan_completion(const CompletionRequest& request,
                                          const ModelService& model);

void serve_completion(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
