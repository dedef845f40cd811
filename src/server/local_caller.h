// Who may change the cluster and see its PINs, whatever keys there are: programs and the status
// page on this machine. A web page from elsewhere in a browser of this machine is not meant, nor is
// what a proxy hands on.
#pragma once

#include <string_view>

#include "net/http_server.h"
#include "server/errors.h"

namespace lockstep {

// Whether a Host header names this machine as only itself can: "localhost:8600", "127.0.0.1",
// "[::1]:8600". A name that somebody else's DNS makes this machine's address is none of them.
bool is_loopback_authority(std::string_view authority);

// 403 with the reason.
ApiResult<Ok> check_local_caller(const HttpRequest& request);

}  // namespace lockstep
