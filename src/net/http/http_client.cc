#include "net/http/http_client.h"

#include <fmt/core.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <utility>

#include "net/http/http_answer_parser.h"
#include "net/http/http_call_impl.h"
#include "net/http/http_fields.h"

namespace lockstep {
namespace {

using boost::system::error_code;
using tcp = boost::asio::ip::tcp;

Result<std::vector<tcp::endpoint>> resolve_call(boost::asio::io_context& context,
                                                const HttpCall& call) {
  if (auto known = known_endpoints(call)) return std::move(*known);
  error_code error;
  const auto results = tcp::resolver(context).resolve(call.host, std::to_string(call.port), error);
  if (error || results.empty()) {
    return Error{ErrorCode::kNotFound, fmt::format("the host {} is unknown", call.host)};
  }
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : results) endpoints.push_back(entry.endpoint());
  return endpoints;
}

// Connect, send and read in sequence, under one deadline.
class Exchange {
 public:
  Exchange(boost::asio::io_context& context, const HttpCall& call)
      : call_(call),
        request_(http_request_bytes(call)),
        socket_(context),
        deadline_(context),
        parser_(call.method == "HEAD") {}

  void start(const std::vector<tcp::endpoint>& endpoints) {
    deadline_.expires_after(call_.timeout);
    deadline_.async_wait([this](const error_code& error) {
      if (error) return;
      end(Error{ErrorCode::kTimeout, fmt::format("{} has not answered within {} ms",
                                                 call_place(call_), call_.timeout.count())});
    });
    boost::asio::async_connect(socket_, endpoints,
                               [this](const error_code& error, const tcp::endpoint&) {
                                 if (result_) return;
                                 if (error) return end(connection_error(call_, error, false));
                                 send();
                               });
  }

  Result<HttpAnswer> take() {
    return result_ ? std::move(*result_)
                   : Error{ErrorCode::kInternal, "an HTTP call ended without a result"};
  }

 private:
  void send() {
    boost::asio::async_write(socket_, boost::asio::buffer(request_),
                             [this](const error_code&, size_t) {
                               // A server may refuse the request and close before it has all of it:
                               // its answer says why.
                               if (!result_) read();
                             });
  }

  void read() {
    socket_.async_read_some(boost::asio::buffer(piece_),
                            [this](const error_code& error, size_t count) {
                              if (result_) return;
                              if (error && error != boost::asio::error::eof) {
                                return end(connection_error(call_, error, true));
                              }
                              take_piece({piece_.data(), count}, static_cast<bool>(error));
                            });
  }

  void take_piece(std::string_view bytes, bool is_last) {
    std::string& body = parser_.answer().body;
    bytes.remove_prefix(parser_.feed(bytes, body));  // up to the end of the head
    parser_.feed(bytes, body);
    if (is_last) parser_.end();
    if (body.size() > call_.body_bytes_max) {
      return end(
          Error{ErrorCode::kExhausted, fmt::format("the answer of {} is longer than {} bytes",
                                                   call_place(call_), call_.body_bytes_max)});
    }
    if (parser_.state() == HttpAnswerParser::State::kFailed) {
      end(answer_error(call_, parser_.error()));
    } else if (parser_.state() == HttpAnswerParser::State::kDone) {
      end(std::move(parser_.answer()));
    } else {
      read();
    }
  }

  void end(Result<HttpAnswer> result) {
    if (result_) return;
    result_.emplace(std::move(result));
    error_code ignored;
    deadline_.cancel();
    socket_.close(ignored);
  }

  const HttpCall& call_;
  const std::string request_;
  tcp::socket socket_;
  boost::asio::steady_timer deadline_;
  HttpAnswerParser parser_;
  std::array<char, 16 << 10> piece_;
  std::optional<Result<HttpAnswer>> result_;
};

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  return find_field(headers, name);
}

Result<HttpAnswer> call_http(const HttpCall& call) {
  TRY(check_http_call(call));
  boost::asio::io_context context(1);
  const std::vector<tcp::endpoint> endpoints = TRY(resolve_call(context, call));
  Exchange exchange(context, call);
  exchange.start(endpoints);
  context.run();
  return exchange.take();
}

}  // namespace lockstep
