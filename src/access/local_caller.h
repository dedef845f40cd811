// Whether a request seems to come from a program on this machine: from a loopback address, with
// this machine as its Host, and without signs of a proxy or a foreign page. A proxy that changes
// nothing looks the same, so this check alone never permits changes (control_secret.h). Pure.
#pragma once

#include "access/api_error.h"
#include "net/http/http_server.h"

namespace lockstep {

// 403 with the reason.
ApiResult<Ok> check_local_caller(const HttpRequest& request);

// Whether a header shows that a proxy, gateway or content network forwarded the request.
bool came_through_proxy(const HttpRequest& request);

}  // namespace lockstep
