// POST /v1/verify: whether an answer is the one that its receipt (server/generation/receipt.h) says
// it is, found out by computing it once more.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

void serve_verify(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
