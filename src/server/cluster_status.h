// GET /cluster/status for people, the status page and `lockstep status`.
#pragma once

#include "net/http_server.h"

namespace lockstep {

class ApiContext;

// {"version", "models": [ModelStatus]}, and of a cluster: "cluster", "nodes", the placement of each
// model, "strangers_refused", "beacon_problem", and for this machine's own users "pins".
HttpResponse cluster_status(const ApiContext& context, const HttpRequest& request);

}  // namespace lockstep
