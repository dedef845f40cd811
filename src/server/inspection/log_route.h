// GET /cluster/log?after=N: the last lines of this node's log (base/log_ring.h). Only for callers
// with control: lines name models, machines and addresses.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// Answers {"lines": [{"number", "at_ms", "level", "text"}], "next"}: "next" is the number to ask
// with for what follows.
void serve_cluster_log(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
