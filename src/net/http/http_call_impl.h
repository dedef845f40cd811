// Shared by the two HTTP clients: the check of a call, its bytes, and the addresses of its host.
// Internal to net/.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http/http_client.h"

namespace lockstep {

// kInvalidArgument: it has characters that would end a line or the request early.
Status check_http_call(const HttpCall& call);
// Head and `body`; a shared body is to be sent after it. Asks the server to close the connection
// afterwards.
std::string http_request_bytes(const HttpCall& call);
// "10.0.0.2:8600", "[::1]:8600"
std::string call_place(const HttpCall& call);
// For a host that needs no name server: numeric or "localhost".
std::optional<std::vector<boost::asio::ip::tcp::endpoint>> known_endpoints(const HttpCall& call);
// Adds the server's address to an error of the answer parser.
Error answer_error(const HttpCall& call, const Error& error);
// The connection failed; `is_connected`: in the middle of the exchange.
Error connection_error(const HttpCall& call, const boost::system::error_code& error,
                       bool is_connected);

}  // namespace lockstep
