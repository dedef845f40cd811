// HttpHeadReader: parses the head of an HTTP/1.1 message, or the trailer of a chunked body,
// incrementally: the first line, and the fields up to the empty line. Strict (RFC 9112 2.2, 5):
// lines end with CR LF, names are tokens directly followed by the colon, no folding, no control
// characters; ambiguous input is refused. Every byte counts towards the limit. Used by the parsers
// of net/. One thread.
#pragma once

#include <string>
#include <string_view>

#include "net/http/http_fields.h"

namespace lockstep {

struct HttpHeadLimits {
  size_t bytes_max;  // as received, with the first line and all line ends
  size_t fields_max;
};

class HttpHeadReader {
 public:
  enum class State { kReading, kDone, kFailed };
  enum class Kind { kHead, kTrailer };  // a trailer has no first line

  // `what` is the subject of an error: "the request header".
  HttpHeadReader(Kind kind, HttpHeadLimits limits, std::string_view what);

  // Returns the number of bytes consumed: all, unless the head ends before.
  size_t feed(std::string_view bytes);
  // Starts a new head.
  void reset();

  State state() const { return state_; }
  // 431: too large; 400 otherwise.
  const HttpFailure& failure() const { return failure_; }
  // As received so far.
  const std::string& first_line() const { return first_line_; }
  HttpFields& fields() { return fields_; }
  const HttpFields& fields() const { return fields_; }

 private:
  void fail(int status, std::string message);
  void fail_malformed(std::string_view why);
  void end_line();
  void add_field(std::string_view line);

  const Kind kind_;
  const HttpHeadLimits limits_;
  const std::string what_;
  State state_ = State::kReading;
  bool has_first_line_;
  size_t bytes_ = 0;
  std::string line_;  // the incomplete one
  std::string first_line_;
  HttpFields fields_;
  HttpFailure failure_{400, ""};
};

}  // namespace lockstep
