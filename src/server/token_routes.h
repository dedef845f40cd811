// POST /tokenize and /detokenize, with llama.cpp's fields: convert text to the model's token ids
// and back.
#pragma once

#include <cstddef>

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

inline constexpr size_t kTokenAnswerBytesMax = 32 << 20;  // of the answer to either

void serve_tokenize(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_detokenize(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
