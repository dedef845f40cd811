// POST /cluster/load, /unload, /restart and /token: what changes the cluster. They wait for
// this node's disk, so they run on a thread that may wait. For callers on this machine alone
// (server/local_caller.h); 409 where this node is in no cluster.
#pragma once

#include "net/http_server.h"

namespace lockstep {

class ApiContext;

// {"model", "path", "context", "streams", "parallel", "parallelism", "nodes", "aliases",
// "idle_unload_s", "replicas"}: all but "model" may be missing. Answers {"model", "path"} once the
// wish is written down.
void serve_cluster_load(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// {"model"}
void serve_cluster_unload(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// {"node"}: drains, ends and begins anew. Answers {"node": id, "life"} once it has been told; the
// status shows another "life" when it is back.
void serve_cluster_restart(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// Answers {"token"}.
void serve_cluster_token(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
