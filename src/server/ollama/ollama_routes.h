// POST /api/chat and /api/generate, and the routes of Ollama's API that are refused: models are
// managed with `lockstep load`, `pull` and similar commands.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

void serve_ollama_chat(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_ollama_generate(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// pull, push, create, copy, delete and blobs.
void refuse_ollama(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
