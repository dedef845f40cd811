// POST /api/embed and its older form /api/embeddings. Vectors have length 1.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

void serve_ollama_embed(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_ollama_embeddings(ApiContext& context, const HttpRequest& request,
                             const HttpReply& reply);

}  // namespace lockstep
