// POST /tokenize and /detokenize, with llama.cpp's fields: texts to the model's token ids and back.
#pragma once

#include "net/http_server.h"

namespace lockstep {

class ApiContext;

void serve_tokenize(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_detokenize(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
