// GET /cluster/status for people, the page and `lockstep status`, and its members for the
// events of GET /cluster/events.
#pragma once

#include "json/json.h"
#include "net/http/http_server.h"
#include "node/cluster/cluster_control.h"

namespace lockstep {

class ApiContext;

// The cluster's report; without a cluster one of this node alone. Waits for the cluster's loop.
ClusterReport look_at_cluster(const ApiContext& context);

// {"version", "nodes", "models": [ModelStatus], "pulls"}, and in a cluster "cluster", the placement
// of each model, "strangers_refused", "beacon_problem". Reads what is on this node's disk.
JsonObject status_members(const ApiContext& context, const ClusterReport& report);
// The member "pins", only for callers with control.
JsonArray pins_json(const ClusterReport& report);

// The members, "control", "happened" and, for callers with control, "pins".
HttpResponse cluster_status(const ApiContext& context, const HttpRequest& request);

}  // namespace lockstep
