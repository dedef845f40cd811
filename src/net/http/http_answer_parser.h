// HttpAnswerParser: turns the bytes of another server's answer into an HttpAnswer. Skips interim
// heads (1xx); invalid HTTP is an error, never an answer. Independent of sockets, so the fuzz
// target uses it too. Used by the HTTP clients of net/. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http/http_body_reader.h"
#include "net/http/http_client.h"
#include "net/http/http_head_reader.h"

namespace lockstep {

inline constexpr HttpHeadLimits kAnswerHeadLimits = {.bytes_max = 64 << 10, .fields_max = 256};
inline constexpr int kInterimHeadsMax = 8;

class HttpAnswerParser {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  // An answer to HEAD has no body, whatever its head says.
  explicit HttpAnswerParser(bool is_to_head);

  // Appends the received part of the body to `body`. Returns the number of bytes consumed: all,
  // unless the head or the answer ends before, or it fails.
  size_t feed(std::string_view bytes, std::string& body);
  // No more bytes will come.
  void end();

  State state() const { return state_; }
  // Status (200 to 599) and headers, once the state is past kHead.
  HttpAnswer& answer() { return answer_; }
  // kCorrupt: not valid HTTP; kExhausted: a head is too large; kPeerLost: it broke off.
  const Error& error() const { return error_; }

 private:
  void fail(ErrorCode code, std::string message);
  void end_head();
  bool read_status_line(std::string_view line);
  void read_framing();

  const bool is_to_head_;
  State state_ = State::kHead;
  HttpHeadReader head_;
  int interim_heads_ = 0;
  HttpAnswer answer_;
  std::optional<HttpBodyReader> body_;
  Error error_{ErrorCode::kCorrupt, ""};
};

}  // namespace lockstep
