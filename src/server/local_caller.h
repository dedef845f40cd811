// Who may change the cluster and see its PINs as long as there are no API keys: programs and the
// status page on this machine. A web page from elsewhere in a browser of this machine is not meant,
// nor is what a proxy hands on.
#pragma once

#include "net/http_server.h"
#include "server/errors.h"

namespace lockstep {

// 403 with the reason.
ApiResult<Ok> check_local_caller(const HttpRequest& request);

}  // namespace lockstep
