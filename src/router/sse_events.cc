#include "router/sse_events.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

constexpr size_t kMarkBytesMax = 4;

// Bytes up to the end of the last whole event. No event ends before `from`.
size_t whole_bytes(std::string_view text, size_t from) {
  const size_t begin = from - std::min(from, kMarkBytesMax - 1);
  const std::string_view fresh = text.substr(begin);
  size_t end = 0;
  for (const std::string_view mark : {"\n\n", "\r\n\r\n"}) {
    const size_t found = fresh.rfind(mark);
    if (found != std::string_view::npos) end = std::max(end, begin + found + mark.size());
  }
  return end;
}

}  // namespace

std::string SseEvents::take(std::string_view piece) {
  const size_t before = unfinished_.size();
  unfinished_ += piece;
  const size_t end = whole_bytes(unfinished_, before);
  if (end == 0 && unfinished_.size() > kEventBytesMax) return take_rest();
  std::string whole = unfinished_.substr(0, end);
  unfinished_.erase(0, end);
  return whole;
}

std::string SseEvents::take_rest() {
  return std::exchange(unfinished_, {});
}

}  // namespace lockstep
