// POST /v1/responses: OpenAI's Responses API, which Codex speaks. Nothing is stored.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

void serve_responses(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// Requests for an earlier response: 404.
void serve_stored_response(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
