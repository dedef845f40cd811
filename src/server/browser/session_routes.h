// GET, POST and DELETE /v1/session: as whom the node takes the page in this browser, and a cookie
// in the place of a key (access/key_sessions.h). On the event loop's thread.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// {"control", "key", "keys_needed", "demo"}: whether the sender may change the node, whether it has
// a key or a session of one, whether the node has keys, and whether its workers may be stopped
// (server/browser/demo_routes.h).
void serve_session(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// With a key, for the own page: {"key": true, "expires_s"} and Set-Cookie.
void serve_session_start(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// {"ended": whether there was one}.
void serve_session_end(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
