// SseEvents: splits a stream of server-sent events at event boundaries, so that an error can be
// inserted at any time. Whole events are passed on at once. Pure; used by a relay.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

class SseEvents {
 public:
  // A longer event is passed on in pieces.
  static constexpr size_t kEventBytesMax = 1 << 20;

  // The bytes that may be sent: whole events, and no byte of an incomplete one. Events end with an
  // empty line, by \n or \r\n.
  std::string take(std::string_view piece);
  // The rest at the end of the stream.
  std::string take_rest();

 private:
  std::string unfinished_;
};

}  // namespace lockstep
