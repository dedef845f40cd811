#include "net/http/http_call_impl.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <iterator>
#include <string_view>

#include "net/frames/frame_connection.h"
#include "net/http/http_fields.h"

namespace lockstep {
namespace {

using boost::system::error_code;
using tcp = boost::asio::ip::tcp;

bool is_printable(std::string_view text, char lowest) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return (c >= lowest && c != 0x7f) || (c & 0x80) != 0; });
}

// Headers that the client sets itself, so the call cannot.
bool is_own_header(std::string_view name) {
  constexpr std::string_view kOwn[] = {"host", "connection", "content-length", "transfer-encoding"};
  return std::any_of(std::begin(kOwn), std::end(kOwn),
                     [&](std::string_view own) { return is_same_word(name, own); });
}

}  // namespace

Status check_http_call(const HttpCall& call) {
  const bool are_headers_fit =
      std::all_of(call.headers.begin(), call.headers.end(), [](const auto& header) {
        return !header.first.empty() && is_printable(header.first, '!') &&
               header.first.find(':') == std::string::npos && is_printable(header.second, ' ');
      });
  if (!call.target.starts_with('/') || !is_printable(call.target, '!') || call.method.empty() ||
      !is_printable(call.method, '!') || !are_headers_fit) {
    return Error{ErrorCode::kInvalidArgument,
                 "an HTTP request has characters that do not belong there"};
  }
  return Ok{};
}

std::string http_request_bytes(const HttpCall& call) {
  std::string bytes = call.method + " " + call.target + " HTTP/1.1\r\nHost: " + call_place(call) +
                      "\r\nConnection: close\r\n";
  const size_t body_bytes = call.shared_body ? call.shared_body->size() : call.body.size();
  if (body_bytes > 0 || call.method != "GET") {
    bytes += "Content-Length: " + std::to_string(body_bytes) + "\r\n";
  }
  for (const auto& [name, value] : call.headers) {
    if (!is_own_header(name)) bytes.append(name).append(": ").append(value).append("\r\n");
  }
  return bytes.append("\r\n").append(call.body);
}

std::string call_place(const HttpCall& call) {
  return NetAddress{call.host, call.port}.text();
}

std::optional<std::vector<tcp::endpoint>> known_endpoints(const HttpCall& call) {
  using namespace boost::asio::ip;
  if (call.host == "localhost") {
    return std::vector<tcp::endpoint>{{address_v4::loopback(), call.port},
                                      {address_v6::loopback(), call.port}};
  }
  error_code error;
  const address numeric = make_address(call.host, error);
  if (error) return std::nullopt;
  return std::vector<tcp::endpoint>{{numeric, call.port}};
}

Error answer_error(const HttpCall& call, const Error& error) {
  const std::string place = call_place(call);
  if (error.code == ErrorCode::kCorrupt) {
    return {error.code, fmt::format("the program that answers at {} does not speak HTTP: {}", place,
                                    error.message)};
  }
  if (error.code == ErrorCode::kPeerLost) {
    return {error.code, fmt::format("{} cut off its answer: {}", place, error.message)};
  }
  return {error.code, fmt::format("the answer of {} is too long: {}", place, error.message)};
}

Error connection_error(const HttpCall& call, const error_code& error, bool is_connected) {
  const std::string place = call_place(call);
  if (!is_connected) {
    return {ErrorCode::kPeerLost,
            fmt::format("there is no answer at {}: {}", place, error.message())};
  }
  return {ErrorCode::kPeerLost, fmt::format("{} cut off its answer: {}", place, error.message())};
}

}  // namespace lockstep
