// The parts of a request and of an answer that a router forwards; headers of one connection are
// dropped (RFC 9110, 7.6.1). Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/frames/frame_connection.h"
#include "net/http/http_server.h"

namespace lockstep {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

HeaderList forwarded_request_headers(const HttpRequest& request);
// Without Content-Type, which HttpReply takes separately.
HeaderList forwarded_answer_headers(const HeaderList& headers);
// Path and query as a request target: the path percent-encoded again.
std::string forwarded_target(const HttpRequest& request);

// "http://host:port", "host:port" or "host" (port 8600); kInvalidArgument names the text.
Result<NetAddress> parse_backend_url(std::string_view text);

}  // namespace lockstep
