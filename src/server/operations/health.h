// GET /health for load balancers.
#pragma once

#include <chrono>

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// A request that takes longer than this to read is stuck: its budget of processor time
// (access/request_workers.h) should have ended it, which takes a few times as long on a
// busy machine.
inline constexpr std::chrono::seconds kStuckAfter{60};

// 200 {"status":"ok"} if a model is ready and no request is stuck; else 503 with "stuck" or the
// state of the first model. The reason, with the model's name and last error, is only for callers
// who may look (RouteAccess).
HttpResponse health(const ApiContext& context, const HttpRequest& request);
// The same, given how long the oldest read in progress has taken.
HttpResponse health(const ApiContext& context, const HttpRequest& request,
                    std::chrono::nanoseconds oldest_busy);

}  // namespace lockstep
