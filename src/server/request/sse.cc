#include "server/request/sse.h"

#include "base/check.h"

namespace lockstep {

StreamHeaders stream_headers(StreamHeaders headers) {
  headers.emplace_back("Cache-Control", "no-cache");
  headers.emplace_back("X-Accel-Buffering", "no");  // nginx would buffer the pieces
  return headers;
}

std::string sse_event(std::string_view json) {
  LOCKSTEP_CHECK(json.find('\n') == std::string_view::npos);
  std::string event = "data: ";
  event.reserve(json.size() + 8);
  return event.append(json).append("\n\n");
}

std::string sse_event(std::string_view name, std::string_view json) {
  return std::string("event: ").append(name).append("\n").append(sse_event(json));
}

}  // namespace lockstep
