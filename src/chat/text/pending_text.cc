#include "chat/text/pending_text.h"

#include <algorithm>

namespace lockstep {

bool PendingText::skip_blanks(std::string_view more) {
  while (at_ < text_.size() && (kBlanks.find(text_[at_]) != std::string_view::npos ||
                                more.find(text_[at_]) != std::string_view::npos)) {
    ++at_;
  }
  return at_ < text_.size();
}

std::string_view PendingText::since_mark() const {
  return is_marked() ? std::string_view(text_).substr(mark_, at_ - mark_) : std::string_view();
}

void PendingText::compact() {
  const size_t drop = std::min(at_, mark_);
  text_.erase(0, drop);
  at_ -= drop;
  if (is_marked()) mark_ -= drop;
}

MarkerMatch match_front(const PendingText& pending, const std::vector<std::string_view>& markers,
                        size_t skipped) {
  const std::string_view rest = pending.rest().substr(skipped);
  MarkerMatch match;
  for (size_t i = 0; i < markers.size(); ++i) {
    const std::string_view marker = markers[i];
    if (rest.substr(0, marker.size()) == marker) {
      const bool is_longer = match.kind != MarkerMatch::Kind::kWhole || marker.size() > match.bytes;
      if (is_longer) match = {MarkerMatch::Kind::kWhole, i, marker.size()};
    } else if (!pending.has_ended() && rest.size() < marker.size() &&
               marker.substr(0, rest.size()) == rest) {
      return {MarkerMatch::Kind::kPartial, 0, 0};
    }
  }
  return match;
}

MarkerPlace find_marker(std::string_view text, const std::vector<std::string_view>& markers) {
  MarkerPlace place;
  for (size_t i = 0; i < markers.size(); ++i) {
    const size_t at = text.find(markers[i]);
    if (at == std::string_view::npos) continue;
    const bool is_longer = at == place.at && markers[i].size() > markers[place.index].size();
    if (at < place.at || is_longer) place = {at, i};
  }
  return place;
}

size_t partial_marker_tail(std::string_view text, const std::vector<std::string_view>& markers) {
  size_t most = 0;
  for (const std::string_view marker : markers) {
    if (marker.empty()) continue;
    for (size_t size = std::min(text.size(), marker.size() - 1); size > most; --size) {
      if (text.substr(text.size() - size) == marker.substr(0, size)) most = size;
    }
  }
  return most;
}

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

size_t blank_tail(std::string_view text) {
  const size_t last = text.find_last_not_of(kBlanks);
  return last == std::string_view::npos ? text.size() : text.size() - last - 1;
}

}  // namespace lockstep
