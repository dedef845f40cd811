// POST /v1/messages and /v1/messages/count_tokens: Anthropic's API, which Claude Code speaks.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

void serve_messages(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_count_tokens(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
