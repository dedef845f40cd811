// GET /health for load balancers.
#pragma once

#include "net/http_server.h"

namespace lockstep {

class ApiContext;

// 200 {"status":"ok"} when a model is ready; else 503 with the state of the first one and the
// reason.
HttpResponse health(const ApiContext& context);

}  // namespace lockstep
