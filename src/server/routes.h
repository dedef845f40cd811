// The table of routes: which function answers which method and path. /v1 is optional for the API's
// routes.
#pragma once

#include "net/http_server.h"

namespace lockstep {

class ApiContext;

// `context` outlives the answer.
void route(ApiContext& context, HttpRequest request, const HttpReply& reply);

}  // namespace lockstep
