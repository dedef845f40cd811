// EventReader: splits a stream of server-sent events, as they arrive, into their names and data
// (HTML's "Server-sent events", 9.2.6). Bytes are untrusted. One thread. Used by `lockstep run` and
// `lockstep top`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct ServerEvent {
  std::string name;  // "message" if it has none
  std::string data;
};

class EventReader {
 public:
  static constexpr size_t kEventBytesMax = 8 << 20;

  // The events that end in this piece. kCorrupt beyond kEventBytesMax.
  Result<std::vector<ServerEvent>> take(std::string_view piece);

 private:
  void take_line(std::string_view line, std::vector<ServerEvent>& events);

  std::string unfinished_;  // of a line
  std::string name_;
  std::string data_;
  bool has_data_ = false;
};

}  // namespace lockstep
