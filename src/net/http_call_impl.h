// What the two HTTP clients share: the check of a call, its bytes, and the addresses of its host.
// For the sources of net/ alone.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"

namespace lockstep {

inline constexpr uint32_t kAnswerHeaderBytesMax = 64 * 1024;

// kInvalidArgument: it has characters that would end a line, or the request, early.
Status check_http_call(const HttpCall& call);
// Asks the server to close the connection afterwards.
boost::beast::http::request<boost::beast::http::string_body> make_http_request(
    const HttpCall& call);
// "10.0.0.2:8600", "[::1]:8600"
std::string call_place(const HttpCall& call);
// Of a host that no name server needs to be asked for: numeric or "localhost".
std::optional<std::vector<boost::asio::ip::tcp::endpoint>> known_endpoints(const HttpCall& call);
// Names in lower case.
std::vector<std::pair<std::string, std::string>> header_list(
    const boost::beast::http::fields& fields);
// It broke off in the middle, as opposed to: it does not speak HTTP.
bool is_broken_off(const boost::system::error_code& error);

}  // namespace lockstep
