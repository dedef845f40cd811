// links: router
// Output of a backend: the parser of answers as HttpStream drives it, and a relay's handling of the
// head: the headers it forwards, the head that the client gets, the split into events. The first
// byte chooses how the rest is cut into pieces, and its lowest bit whether HEAD was requested.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "net/http/http_answer_parser.h"
#include "net/http/http_head.h"
#include "router/forwarding.h"
#include "router/sse_events.h"

namespace lockstep {
namespace {

using State = HttpAnswerParser::State;

struct Outcome {
  State state = State::kHead;
  int status = 0;
  std::string body;

  bool operator==(const Outcome&) const = default;
};

// The bytes for the client have one head, which ends where it should.
void check_head(const HttpAnswer& answer) {
  LOCKSTEP_CHECK(answer.status >= 200 && answer.status <= 599);
  const HeaderList headers = forwarded_answer_headers(answer.headers);
  LOCKSTEP_CHECK(headers.size() <= kAnswerHeadLimits.fields_max);
  const std::string head = http_head({.status = answer.status,
                                      .content_type = answer.header("content-type"),
                                      .headers = &headers,
                                      .is_chunked = true});
  LOCKSTEP_CHECK(head.find("\r\n\r\n") == head.size() - 4);
  HttpAnswerParser again(true);
  std::string none;
  LOCKSTEP_CHECK(again.feed(head, none) == head.size());
  const bool is_larger = again.state() == State::kFailed;  // the date and other headers are ours
  LOCKSTEP_CHECK(is_larger ? again.error().code == ErrorCode::kExhausted
                           : again.answer().status == answer.status);
}

void take_body(SseEvents& events, std::string& told, std::string_view piece) {
  told += events.take(piece);
}

Outcome parse(std::string_view bytes, size_t step, bool is_to_head) {
  HttpAnswerParser parser(is_to_head);
  Outcome outcome;
  SseEvents events;
  std::string told;
  while (!bytes.empty() && (parser.state() == State::kHead || parser.state() == State::kBody)) {
    std::string_view piece = bytes.substr(0, step);
    bytes.remove_prefix(piece.size());
    std::string content;
    if (parser.state() == State::kHead) {
      const size_t taken = parser.feed(piece, content);
      LOCKSTEP_CHECK(taken <= piece.size() && content.empty());
      piece.remove_prefix(taken);
      if (parser.state() == State::kBody || parser.state() == State::kDone) {
        check_head(parser.answer());
      }
    }
    if (parser.state() == State::kBody) {
      LOCKSTEP_CHECK(parser.feed(piece, content) <= piece.size());
      LOCKSTEP_CHECK(content.size() <= piece.size());
      take_body(events, told, content);
      outcome.body += content;
    }
  }
  parser.end();
  LOCKSTEP_CHECK(told + events.take_rest() == outcome.body);
  LOCKSTEP_CHECK(parser.state() == State::kDone || parser.state() == State::kFailed);
  LOCKSTEP_CHECK(parser.state() == State::kDone || !parser.error().message.empty());
  outcome.state = parser.state();
  outcome.status = parser.answer().status;
  return outcome;
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool is_to_head = (data[0] & 1) != 0;
  const size_t step = data[0] < 2 ? size : data[0] / 2;
  const auto in_pieces = lockstep::parse(bytes, step, is_to_head);
  // The answer is the same however it is cut.
  LOCKSTEP_CHECK(in_pieces == lockstep::parse(bytes, size, is_to_head));
  return 0;
}
