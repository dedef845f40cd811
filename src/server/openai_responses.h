// POST /v1/responses: OpenAI's Responses API, which Codex speaks. Nothing is stored.
#pragma once

#include "net/http_server.h"

namespace lockstep {

class ApiContext;

void serve_responses(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// What asks for a response that was given before: 404.
void serve_stored_response(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
