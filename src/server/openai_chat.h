// POST /v1/chat/completions: the request's body as a struct (pure), and its answer.
#pragma once

#include <string_view>

#include "json/json.h"
#include "net/http_server.h"
#include "server/chat_plan.h"

namespace lockstep {

class ApiContext;

ApiResult<ChatRequest> parse_chat_request(std::string_view body);
// The same of a body that is read already, or that another API has put into this form.
ApiResult<ChatRequest> parse_chat_fields(const JsonObject& body);

void serve_chat(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
