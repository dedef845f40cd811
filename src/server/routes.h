// The table of routes: the function that answers each method and path. /v1 is optional for the
// API's routes.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// `context` outlives every answer.

// Decides by method, path, Host and key, before the body is read: HttpServer::Limits::admit.
HttpAdmission admit(ApiContext& context, HttpRequest& head);
// Answers an admitted request.
void route(ApiContext& context, HttpRequest request, const HttpReply& reply);

}  // namespace lockstep
