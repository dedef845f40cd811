#include "router/sse_events.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

// Bytes up to the end of the last whole event.
size_t whole_bytes(std::string_view text) {
  size_t end = 0;
  for (const std::string_view mark : {"\n\n", "\r\n\r\n"}) {
    const size_t found = text.rfind(mark);
    if (found != std::string_view::npos) end = std::max(end, found + mark.size());
  }
  return end;
}

}  // namespace

std::string SseEvents::take(std::string_view piece) {
  unfinished_ += piece;
  const size_t end = whole_bytes(unfinished_);
  if (end == 0 && unfinished_.size() > kEventBytesMax) return take_rest();
  std::string whole = unfinished_.substr(0, end);
  unfinished_.erase(0, end);
  return whole;
}

std::string SseEvents::take_rest() {
  return std::exchange(unfinished_, {});
}

}  // namespace lockstep
