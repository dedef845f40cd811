#include "server/generation/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace lockstep {

std::string StopMatcher::push(std::string_view piece) {
  if (is_stopped_) return {};
  held_ += piece;
  size_t found = std::string::npos;
  for (const std::string& stop : stop_) {
    const size_t place = held_.find(stop);
    if (place >= found) continue;
    found = place;
    met_ = stop;
  }
  if (found != std::string::npos) {
    is_stopped_ = true;
    held_.resize(found);
    return std::exchange(held_, {});
  }
  size_t keep = 0;  // the longest suffix of the text that begins a stop string
  for (const std::string& stop : stop_) {
    for (size_t size = std::min(held_.size(), stop.size() - 1); size > keep; --size) {
      if (std::string_view(held_).substr(held_.size() - size) ==
          std::string_view(stop).substr(0, size)) {
        keep = size;
      }
    }
  }
  std::string emitted = held_.substr(0, held_.size() - keep);
  held_.erase(0, emitted.size());
  return emitted;
}

std::string StopMatcher::finish() {
  return is_stopped_ ? std::string() : std::exchange(held_, {});
}

}  // namespace lockstep
