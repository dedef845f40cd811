// POST /cluster/load, /unload, /restart and /token, which change the cluster. They wait for this
// node's disk, so they run on a thread that may block. Only for callers with control
// (access/access_control.h); 409 if this node is in no cluster.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// {"model", "path", "context", "streams", "parallel", "parallelism", "nodes", "aliases",
// "idle_unload_s", "replicas"}: all but "model" are optional. Answers {"model", "path"} once the
// wish is stored.
void serve_cluster_load(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// {"model"}
void serve_cluster_unload(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// {"node"}: drains, stops and restarts it. Answers {"node": id, "life"} once the node has the
// order; the status shows another "life" when it is back.
void serve_cluster_restart(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// Answers {"token"}.
void serve_cluster_token(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
