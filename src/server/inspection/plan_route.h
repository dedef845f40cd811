// POST /cluster/plan: where a model would go, and how fast it would be, on the nodes that are
// there, with machines added and nodes removed (node/cluster/what_if.h). Nothing is loaded or
// changed. The request's budget of processor time and its cancel end a plan.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// {"model", "context", "streams", "add": [{"profile", "link", "name"}], "remove": [node]}. Answers
// the JSON of `lockstep plan --json`.
void serve_cluster_plan(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
