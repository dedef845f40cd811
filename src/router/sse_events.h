// SseEvents: cuts a stream of server-sent events where events end, so that an error can follow at
// any time without breaking into one. What is whole goes on at once. Pure; used by a relay.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

class SseEvents {
 public:
  // An event that is longer is handed on in pieces.
  static constexpr size_t kEventBytesMax = 1 << 20;

  // All that may go on: whole events, and no byte of one that is not whole yet. Events end with an
  // empty line, by \n or \r\n.
  std::string take(std::string_view piece);
  // The rest at the end of the stream.
  std::string take_rest();

 private:
  std::string unfinished_;
};

}  // namespace lockstep
