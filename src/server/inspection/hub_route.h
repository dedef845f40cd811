// GET /hub/search?q=WORDS&limit=N: models at the hub that this node is configured for
// (hub/http/hub_search.h). Only for callers with control: the node makes a request of its own,
// with its token.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// Answers {"models": [{"id", "downloads", "likes", "updated", "gated"}]}.
void serve_hub_search(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
