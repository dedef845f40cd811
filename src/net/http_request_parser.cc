#include "net/http_request_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/check.h"
#include "net/http_target.h"

namespace lockstep {
namespace http = boost::beast::http;
namespace {

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

struct HttpRequestParser::Impl {
  http::request_parser<http::string_body> parser;
  size_t header_bytes_max;
  size_t body_bytes_max;
};

HttpRequestParser::HttpRequestParser(size_t header_bytes_max, size_t body_bytes_max)
    : impl_(std::make_unique<Impl>()) {
  impl_->header_bytes_max = header_bytes_max;
  impl_->body_bytes_max = body_bytes_max;
  impl_->parser.header_limit(static_cast<uint32_t>(header_bytes_max));
  impl_->parser.body_limit(body_bytes_max);
}

HttpRequestParser::~HttpRequestParser() = default;

size_t HttpRequestParser::feed(std::string_view bytes) {
  auto& parser = impl_->parser;
  size_t taken = 0;
  while ((state_ == State::kHeader || state_ == State::kBody) && taken < bytes.size()) {
    boost::beast::error_code error;
    const std::string_view rest = bytes.substr(taken);
    const size_t count = parser.put(boost::asio::buffer(rest.data(), rest.size()), error);
    taken += count;
    if (error == http::error::header_limit) {
      fail(431, "the request header is larger than " + std::to_string(impl_->header_bytes_max) +
                    " bytes");
    } else if (error == http::error::body_limit) {
      fail(413,
           "the request body is larger than " + std::to_string(impl_->body_bytes_max) + " bytes");
    } else if (error && error != http::error::need_more) {
      fail(400, "the request is not valid HTTP: " + error.message());
    } else if (state_ == State::kHeader && parser.is_header_done()) {
      state_ = State::kBody;
      parser.eager(true);
      check_header();
      if (state_ == State::kBody && parser.is_done()) state_ = State::kDone;
    } else if (state_ == State::kBody && parser.is_done()) {
      state_ = State::kDone;
    } else if (count == 0) {
      break;
    }
  }
  return taken;
}

void HttpRequestParser::fail(int status, std::string message) {
  state_ = State::kFailed;
  failure_ = {status, std::move(message)};
}

void HttpRequestParser::check_header() {
  const auto& request = impl_->parser.get();
  if (request.target().size() > kTargetBytesMax) {
    return fail(414,
                "the request target is longer than " + std::to_string(kTargetBytesMax) + " bytes");
  }
  auto target = parse_target(view(request.target()));
  if (!target.ok()) return fail(400, target.error().message);
  path_ = std::move(target.value().path);
  query_ = std::move(target.value().query);
  if (request.version() == 11 && request.count(http::field::host) != 1) {
    return fail(400, "an HTTP/1.1 request must have exactly one Host header");
  }
  // Anything but plain chunked would leave the end of the body open to interpretation (request
  // smuggling).
  if (request.count(http::field::transfer_encoding) != 0 &&
      !boost::beast::iequals(request[http::field::transfer_encoding], "chunked")) {
    return fail(400, "the only supported Transfer-Encoding of a request is chunked");
  }
  if (request.count(http::field::expect) != 0 && !expects_continue()) {
    return fail(417, "the only supported Expect header is 100-continue");
  }
}

bool HttpRequestParser::expects_continue() const {
  const auto& request = impl_->parser.get();
  return request.version() == 11 &&
         boost::beast::iequals(request[http::field::expect], "100-continue");
}

bool HttpRequestParser::keeps_alive() const {
  return impl_->parser.get().keep_alive();
}
bool HttpRequestParser::is_head() const {
  return impl_->parser.get().method() == http::verb::head;
}
bool HttpRequestParser::is_http_1_0() const {
  return impl_->parser.get().version() < 11;
}

size_t HttpRequestParser::body_bytes() const {
  return impl_->parser.get().body().size();
}

// A body that is announced to be too large is refused before the header has been checked.
std::string HttpRequestParser::path() const {
  if (!path_.empty()) return path_;
  auto target = parse_target(view(impl_->parser.get().target()).substr(0, kTargetBytesMax));
  return target.ok() ? std::move(target.value().path) : std::string();
}

HttpRequest HttpRequestParser::take() {
  LOCKSTEP_CHECK(state_ == State::kDone);
  auto& message = impl_->parser.get();
  HttpRequest request;
  request.method = is_head() ? "GET" : std::string(view(message.method_string()));
  request.path = std::move(path_);
  request.query = std::move(query_);
  for (const auto& field : message) {
    request.headers.emplace_back(to_lower(view(field.name_string())), view(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

}  // namespace lockstep
