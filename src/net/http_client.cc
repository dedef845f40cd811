#include "net/http_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "net/frame_connection.h"

namespace lockstep {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = boost::asio::ip::tcp;

constexpr uint32_t kHeaderBytesMax = 64 * 1024;

bool is_printable(std::string_view text, char lowest) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return (c >= lowest && c != 0x7f) || (c & 0x80) != 0; });
}

// What would end its line, or the request, early.
Status check(const HttpCall& call) {
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

Result<std::vector<tcp::endpoint>> resolve(boost::asio::io_context& context, const HttpCall& call) {
  using namespace boost::asio::ip;
  if (call.host == "localhost") {
    return std::vector<tcp::endpoint>{{address_v4::loopback(), call.port},
                                      {address_v6::loopback(), call.port}};
  }
  error_code error;
  if (const address numeric = make_address(call.host, error); !error) {
    return std::vector<tcp::endpoint>{{numeric, call.port}};
  }
  const auto results = tcp::resolver(context).resolve(call.host, std::to_string(call.port), error);
  if (error || results.empty()) {
    return Error{ErrorCode::kNotFound, fmt::format("the host {} is not known", call.host)};
  }
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : results) endpoints.push_back(entry.endpoint());
  return endpoints;
}

// "10.0.0.2:8600", "[::1]:8600"
std::string where(const HttpCall& call) {
  return NetAddress{call.host, call.port}.text();
}

http::request<http::string_body> request_of(const HttpCall& call) {
  http::request<http::string_body> request;
  request.version(11);
  request.method_string(call.method);
  request.target(call.target);
  for (const auto& [name, value] : call.headers) request.set(name, value);
  request.set(http::field::host, where(call));
  request.set(http::field::connection, "close");
  request.body() = call.body;
  request.prepare_payload();
  return request;
}

// The three acts in a row; the stream's own deadline ends each of them.
class Exchange {
 public:
  Exchange(boost::asio::io_context& context, const HttpCall& call)
      : request_(request_of(call)), stream_(context) {
    stream_.expires_after(call.timeout);
    parser_.header_limit(kHeaderBytesMax);
    parser_.body_limit(call.body_bytes_max);
    parser_.skip(call.method == "HEAD");
  }

  void start(const std::vector<tcp::endpoint>& endpoints) {
    stream_.async_connect(endpoints, [this](error_code error, const tcp::endpoint&) {
      is_connected_ = !error;
      if (is_ended_by(error)) return;
      http::async_write(stream_, request_, [this](error_code sent, size_t) {
        if (is_ended_by(sent)) return;
        http::async_read(stream_, buffer_, parser_,
                         [this](error_code read, size_t) { error_ = read; });
      });
    });
  }

  const error_code& error() const { return error_; }
  bool is_connected() const { return is_connected_; }
  http::response<http::string_body> take() { return parser_.release(); }

 private:
  bool is_ended_by(error_code error) {
    error_ = error;
    return static_cast<bool>(error);
  }

  http::request<http::string_body> request_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  error_code error_;
  bool is_connected_ = false;
};

Error describe(const HttpCall& call, const Exchange& exchange) {
  const std::string place = where(call);
  const error_code& error = exchange.error();
  if (error == boost::beast::error::timeout) {
    return {ErrorCode::kTimeout,
            fmt::format("{} has not answered within {} ms", place, call.timeout.count())};
  }
  if (error == http::error::body_limit || error == http::error::header_limit) {
    return {ErrorCode::kExhausted,
            fmt::format("the answer of {} is longer than {} bytes", place, call.body_bytes_max)};
  }
  if (!exchange.is_connected()) {
    return {ErrorCode::kPeerLost, fmt::format("nobody answers at {}: {}", place, error.message())};
  }
  const bool is_broken_off = error == http::error::end_of_stream ||
                             error == http::error::partial_message ||
                             error.category() == boost::asio::error::get_system_category();
  if (is_broken_off) {
    return {ErrorCode::kPeerLost,
            fmt::format("{} broke off its answer: {}", place, error.message())};
  }
  return {ErrorCode::kCorrupt,
          fmt::format("what answers at {} does not speak HTTP: {}", place, error.message())};
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

Result<HttpAnswer> call_http(const HttpCall& call) {
  TRY(check(call));
  boost::asio::io_context context(1);
  const std::vector<tcp::endpoint> endpoints = TRY(resolve(context, call));
  Exchange exchange(context, call);
  exchange.start(endpoints);
  context.run();
  if (exchange.error()) return describe(call, exchange);
  http::response<http::string_body> response = exchange.take();
  HttpAnswer answer;
  answer.status = static_cast<int>(response.result_int());
  for (const auto& field : response) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    answer.headers.emplace_back(std::move(name), std::string(field.value()));
  }
  answer.body = std::move(response.body());
  return answer;
}

}  // namespace lockstep
