// GET /cluster/status for people, the status page and `lockstep status`.
#pragma once

#include "json/json.h"
#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// The status for a caller with or without control.
JsonObject cluster_status_json(const ApiContext& context, bool has_control);

// {"version", "control", "models": [ModelStatus], "pulls"}, and in a cluster: "cluster", "nodes",
// the placement of each model, "strangers_refused", "beacon_problem", and for callers with control
// "pins".
HttpResponse cluster_status(const ApiContext& context, const HttpRequest& request);

}  // namespace lockstep
