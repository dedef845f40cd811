// GET /cluster/events: the status and its changes as server-sent events
// (server/events/event_hub.h), served on the event loop: a stream occupies no thread.
#pragma once

#include <string_view>

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

inline constexpr std::string_view kEventsPath = "/cluster/events";

void serve_cluster_events(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
