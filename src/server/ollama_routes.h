// POST /api/chat and /api/generate, and what of Ollama's API is refused as a whole: models come and
// go by `lockstep load`, `pull` and their like.
#pragma once

#include "net/http_server.h"

namespace lockstep {

class ApiContext;

void serve_ollama_chat(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_ollama_generate(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// pull, push, create, copy, delete and blobs.
void refuse_ollama(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
