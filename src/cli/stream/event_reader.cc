#include "cli/stream/event_reader.h"

#include <fmt/core.h>

namespace lockstep {

Result<std::vector<ServerEvent>> EventReader::take(std::string_view piece) {
  std::vector<ServerEvent> events;
  size_t end = 0;
  while ((end = piece.find('\n')) != std::string_view::npos) {
    unfinished_ += piece.substr(0, end);
    piece.remove_prefix(end + 1);
    if (unfinished_.ends_with('\r')) unfinished_.pop_back();
    take_line(unfinished_, events);
    unfinished_.clear();
  }
  unfinished_ += piece;
  if (unfinished_.size() + data_.size() > kEventBytesMax) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("an event of the stream is longer than {} bytes", kEventBytesMax)};
  }
  return events;
}

void EventReader::take_line(std::string_view line, std::vector<ServerEvent>& events) {
  if (line.empty()) {
    if (has_data_) events.push_back({name_.empty() ? "message" : name_, data_});
    name_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") name_ = value;
  if (field != "data") return;  // or a comment, an id
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

}  // namespace lockstep
