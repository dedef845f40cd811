// HttpRequestParser: the bytes of one request in, an HttpRequest or the status of its refusal out.
// Wraps Beast's incremental parser with our limits; knows nothing of sockets, so the fuzz target
// feeds it too. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/http_server.h"

namespace lockstep {

struct HttpFailure {
  int status;
  std::string message;  // one sentence
};

class HttpRequestParser {
 public:
  enum class State { kHeader, kBody, kDone, kFailed };

  HttpRequestParser(size_t header_bytes_max, size_t body_bytes_max);
  ~HttpRequestParser();

  // Returns how many bytes from the front it has taken; the rest must be there again, with more,
  // next time.
  size_t feed(std::string_view bytes);

  State state() const { return state_; }
  const HttpFailure& failure() const { return failure_; }
  // The following are known after the header.
  bool expects_continue() const;
  bool keeps_alive() const;
  bool is_head() const;
  bool is_http_1_0() const;
  size_t body_bytes() const;  // that have come
  // As far as the request names one; empty otherwise. Also in kFailed, not after take().
  std::string path() const;
  // Once, in kDone. HEAD is handed on as GET: the connection leaves the body out.
  HttpRequest take();

 private:
  struct Impl;

  void fail(int status, std::string message);
  void check_header();

  std::unique_ptr<Impl> impl_;
  State state_ = State::kHeader;
  HttpFailure failure_{400, ""};
  std::string path_;
  std::string query_;
};

}  // namespace lockstep
