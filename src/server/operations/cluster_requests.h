// GET /cluster/requests: the answers in progress for this node's clients; DELETE
// /cluster/requests/ID ends one.
#pragma once

#include <string_view>

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

inline constexpr std::string_view kRequestsPrefix = "/cluster/requests/";

// Every caller sees every request; its client only if it is the caller's own, or the caller has
// control.
void serve_cluster_requests(ApiContext& context, const HttpRequest& request,
                            const HttpReply& reply);
// For callers with control, and for the client of the request: its key or, without keys, programs
// of the same machine.
void serve_request_cancel(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
