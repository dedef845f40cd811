// POST /v1/chat/completions: parses the request's body (pure) and answers it.
#pragma once

#include <string_view>

#include "json/json.h"
#include "net/http/http_server.h"
#include "server/chat/chat_plan.h"

namespace lockstep {

class ApiContext;

ApiResult<ChatRequest> parse_chat_request(std::string_view body);
// The same for a body that is already parsed, or that another API has converted to this form.
ApiResult<ChatRequest> parse_chat_fields(const JsonObject& body);

// The answer to it, through the model's template.
ApiResult<ChatPlan> plan_chat_answer(const ChatRequest& request, const ModelService& model,
                                     const SampledCalls& sampled);

void serve_chat(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
