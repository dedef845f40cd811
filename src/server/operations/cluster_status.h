// GET /cluster/status for people, the status page and `lockstep status`.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// {"version", "control", "models": [ModelStatus]}, and in a cluster: "cluster", "nodes", the
// placement of each model, "strangers_refused", "beacon_problem", and for callers with control
// "pins".
HttpResponse cluster_status(const ApiContext& context, const HttpRequest& request);

}  // namespace lockstep
