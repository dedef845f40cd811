// GET /health for load balancers and GET /cluster/status for people and the status page.
#pragma once

#include "net/http_server.h"

namespace lockstep {

class ApiContext;

// 200 {"status":"ok"} when a model is ready; else 503 with the state of the first one and the
// reason.
HttpResponse health(const ApiContext& context);
// {"version", "models": [ModelStatus], "power_w" where the machine counts its energy}
HttpResponse cluster_status(const ApiContext& context);

}  // namespace lockstep
