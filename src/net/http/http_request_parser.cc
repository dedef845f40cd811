#include "net/http/http_request_parser.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/letters.h"
#include "net/http/http_target.h"

namespace lockstep {
namespace {

constexpr size_t kMethodBytesMax = 32;

}  // namespace

HttpRequestParser::HttpRequestParser(HttpHeadLimits limits)
    : head_(HttpHeadReader::Kind::kHead, limits, "the request header") {}

size_t HttpRequestParser::feed(std::string_view bytes) {
  size_t taken = 0;
  if (state_ == State::kHeader) {
    taken = head_.feed(bytes);
    if (head_.state() == HttpHeadReader::State::kFailed) {
      fail(head_.failure().status, head_.failure().message);
    } else if (head_.state() == HttpHeadReader::State::kDone) {
      end_head();
    }
  } else if (state_ == State::kBody) {
    taken = feed_body(bytes);
  }
  return taken;
}

void HttpRequestParser::fail(int status, std::string message) {
  state_ = State::kFailed;
  failure_ = {status, std::move(message)};
}

void HttpRequestParser::end_head() {
  state_ = State::kHead;
  if (!read_request_line(head_.first_line())) return;
  request_.headers = std::move(head_.fields());
  if (!check_host() || !read_framing()) return;
  keeps_alive_ = is_http_1_0_ ? lists_token(request_.headers, "connection", "keep-alive")
                              : !lists_token(request_.headers, "connection", "close");
  const std::string_view expectation = find_field(request_.headers, "expect");
  expects_continue_ = !is_http_1_0_ && is_same_word(expectation, "100-continue");
  if (!expectation.empty() && !expects_continue_) {
    fail(417, "the only supported Expect header is 100-continue");
  }
}

// "METHOD TARGET HTTP/1.1", one space between them.
bool HttpRequestParser::read_request_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first == std::string_view::npos || first == second) {
    fail(400,
         "the request is not valid HTTP: its first line is not a method, a target and a "
         "version");
    return false;
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (!is_token(method) || method.size() > kMethodBytesMax) {
    fail(400, "the request is not valid HTTP: its method is not a word");
  } else if (target.find_first_of(" \t") != std::string_view::npos) {
    fail(400, "the request is not valid HTTP: its target has spaces");
  } else if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    fail(400, "the request is not valid HTTP: its version is neither HTTP/1.1 nor HTTP/1.0");
  } else {
    is_http_1_0_ = version == "HTTP/1.0";
    is_head_ = request_.is_head = method == "HEAD";
    request_.method = is_head_ ? "GET" : std::string(method);
    return read_target(target);
  }
  return false;
}

bool HttpRequestParser::read_target(std::string_view text) {
  if (text.size() > kTargetBytesMax) {
    fail(414, "the request target is longer than " + std::to_string(kTargetBytesMax) + " bytes");
    return false;
  }
  auto target = parse_target(text);
  if (!target.ok()) {
    fail(400, target.error().message);
    return false;
  }
  request_.path = std::move(target.value().path);
  request_.query = std::move(target.value().query);
  authority_ = std::move(target.value().authority);
  return true;
}

// RFC 9112 3.2. All readers of a request must agree on its target host.
bool HttpRequestParser::check_host() {
  const size_t count = count_fields(request_.headers, "host");
  if (count > 1 || (count == 0 && !is_http_1_0_)) {
    fail(400, "an HTTP/1.1 request must have exactly one Host header");
    if (is_http_1_0_) failure_.message = "an HTTP/1.0 request may have one Host header, not more";
    return false;
  }
  const std::string_view host = find_field(request_.headers, "host");
  if (authority_.empty() || (count == 1 && is_same_word(host, lower_text(authority_)))) return true;
  fail(400, "the Host header is not the host of the request target");
  return false;
}

// Two fields that both determine the end of the body would let two programs disagree about it
// (request smuggling), so only the plain forms pass.
bool HttpRequestParser::read_framing() {
  const size_t lengths = count_fields(request_.headers, "content-length");
  const size_t encodings = count_fields(request_.headers, "transfer-encoding");
  if (encodings > 0) {
    const bool is_chunked =
        encodings == 1 &&
        is_same_word(find_field(request_.headers, "transfer-encoding"), "chunked");
    if (!is_chunked || is_http_1_0_) {
      fail(400, "the only supported Transfer-Encoding of a request is chunked, in HTTP/1.1");
    } else if (lengths > 0) {
      fail(400, "a request must not have both Content-Length and Transfer-Encoding");
    } else {
      body_.emplace(HttpBodyReader::Framing::kChunked, 0, "the request body");
    }
  } else if (lengths > 0) {
    const auto length = parse_length(find_field(request_.headers, "content-length"));
    if (lengths > 1 || !length) {
      fail(400, "a request may have one Content-Length, which is a number");
    } else if (*length > 0) {
      announced_bytes_ = *length;
      body_.emplace(HttpBodyReader::Framing::kLength, *length, "the request body");
    }
  }
  return state_ != State::kFailed;
}

void HttpRequestParser::accept(size_t body_bytes_max) {
  LOCKSTEP_CHECK(state_ == State::kHead);
  body_bytes_max_ = body_bytes_max;
  state_ = body_ ? State::kBody : State::kDone;
  if (announced_bytes_ > body_bytes_max_) feed_body("");
}

size_t HttpRequestParser::feed_body(std::string_view bytes) {
  const size_t room = body_bytes_max_ - request_.body.size();
  const size_t taken =
      announced_bytes_ > body_bytes_max_ ? 0 : body_->feed(bytes, request_.body, room + 1);
  if (request_.body.size() + body_->announced_bytes() > body_bytes_max_) {
    fail(413, "the request body is larger than " + std::to_string(body_bytes_max_) + " bytes");
  } else if (body_->state() == HttpBodyReader::State::kFailed) {
    fail(body_->failure().status, body_->failure().message);
  } else if (body_->state() == HttpBodyReader::State::kDone) {
    state_ = State::kDone;
  }
  return taken;
}

HttpRequest HttpRequestParser::take() {
  LOCKSTEP_CHECK(state_ == State::kDone);
  return std::move(request_);
}

}  // namespace lockstep
