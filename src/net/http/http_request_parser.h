// HttpRequestParser: turns the bytes of one request into an HttpRequest or an error status. Stops
// after the head, so that the request can be admitted before its body is read. Independent of
// sockets, so the fuzz target uses it too. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http/http_body_reader.h"
#include "net/http/http_fields.h"
#include "net/http/http_head_reader.h"
#include "net/http/http_server.h"

namespace lockstep {

class HttpRequestParser {
 public:
  // kHead: the head is complete; accept() continues.
  enum class State { kHeader, kHead, kBody, kDone, kFailed };

  explicit HttpRequestParser(HttpHeadLimits limits);

  // Returns the number of bytes consumed; the rest must be passed again, with more, next time.
  // Consumes nothing in kHead.
  size_t feed(std::string_view bytes);

  State state() const { return state_; }
  const HttpFailure& failure() const { return failure_; }

  // From kHead on: the request, without its body. HEAD is handed on as GET: the connection omits
  // the body.
  HttpRequest& head() { return request_; }
  bool has_body() const { return body_.has_value(); }
  bool expects_continue() const { return expects_continue_; }
  bool keeps_alive() const { return keeps_alive_; }
  bool is_head() const { return is_head_; }
  bool is_http_1_0() const { return is_http_1_0_; }
  // In kHead, once: starts reading the body, which fails with 413 if it is longer than this.
  void accept(size_t body_bytes_max);
  size_t body_bytes() const { return request_.body.size(); }  // received so far

  // Empty if the request names none. Not after take().
  const std::string& path() const { return request_.path; }
  // Once, in kDone.
  HttpRequest take();

 private:
  void fail(int status, std::string message);
  void end_head();
  bool read_request_line(std::string_view line);
  bool read_target(std::string_view target);
  bool check_host();
  bool read_framing();
  size_t feed_body(std::string_view bytes);

  State state_ = State::kHeader;
  HttpFailure failure_{400, ""};
  HttpHeadReader head_;
  HttpRequest request_;
  std::string authority_;  // of a target in absolute form
  std::optional<HttpBodyReader> body_;
  uint64_t announced_bytes_ = 0;
  size_t body_bytes_max_ = 0;
  bool expects_continue_ = false;
  bool keeps_alive_ = true;
  bool is_head_ = false;
  bool is_http_1_0_ = false;
};

}  // namespace lockstep
