// POST /demo/kill: kills a worker of the served group, for a user who wants to see it heal. Only
// with `lockstep serve --demo`, and only for programs and the page of this machine; it needs no
// control, since a group that heals loses nothing. On the event loop's thread.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// {"rank"?}: without it the highest. Answers {"rank", "pid"}.
void serve_demo_kill(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
