#include "net/http_call_impl.h"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <string_view>

#include "net/frame_connection.h"

namespace lockstep {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = boost::asio::ip::tcp;

bool is_printable(std::string_view text, char lowest) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return (c >= lowest && c != 0x7f) || (c & 0x80) != 0; });
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

http::request<http::string_body> make_http_request(const HttpCall& call) {
  http::request<http::string_body> request;
  request.version(11);
  request.method_string(call.method);
  request.target(call.target);
  for (const auto& [name, value] : call.headers) request.set(name, value);
  request.set(http::field::host, call_place(call));
  request.set(http::field::connection, "close");
  request.body() = call.body;
  request.prepare_payload();
  return request;
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

std::vector<std::pair<std::string, std::string>> header_list(const http::fields& fields) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (const auto& field : fields) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    headers.emplace_back(std::move(name), std::string(field.value()));
  }
  return headers;
}

bool is_broken_off(const error_code& error) {
  return error == http::error::end_of_stream || error == http::error::partial_message ||
         error == boost::asio::error::eof ||
         error.category() == boost::asio::error::get_system_category();
}

}  // namespace lockstep
