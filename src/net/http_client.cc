#include "net/http_client.h"

#include <fmt/core.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "net/http_call_impl.h"

namespace lockstep {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = boost::asio::ip::tcp;

Result<std::vector<tcp::endpoint>> resolve(boost::asio::io_context& context, const HttpCall& call) {
  if (auto known = known_endpoints(call)) return std::move(*known);
  error_code error;
  const auto results = tcp::resolver(context).resolve(call.host, std::to_string(call.port), error);
  if (error || results.empty()) {
    return Error{ErrorCode::kNotFound, fmt::format("the host {} is not known", call.host)};
  }
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : results) endpoints.push_back(entry.endpoint());
  return endpoints;
}

// The three acts in a row; the stream's own deadline ends each of them.
class Exchange {
 public:
  Exchange(boost::asio::io_context& context, const HttpCall& call)
      : request_(make_http_request(call)), stream_(context) {
    stream_.expires_after(call.timeout);
    parser_.header_limit(kAnswerHeaderBytesMax);
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
  const std::string place = call_place(call);
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
  if (is_broken_off(error)) {
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
  TRY(check_http_call(call));
  boost::asio::io_context context(1);
  const std::vector<tcp::endpoint> endpoints = TRY(resolve(context, call));
  Exchange exchange(context, call);
  exchange.start(endpoints);
  context.run();
  if (exchange.error()) return describe(call, exchange);
  http::response<http::string_body> response = exchange.take();
  HttpAnswer answer;
  answer.status = static_cast<int>(response.result_int());
  answer.headers = header_list(response);
  answer.body = std::move(response.body());
  return answer;
}

}  // namespace lockstep
