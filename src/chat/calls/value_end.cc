#include "chat/calls/value_end.h"

#include <algorithm>

#include "chat/calls/call_reader.h"

namespace lockstep {
namespace {

using EndKind = ValueEnd::Kind;

void add(ToolFormat::Markers& all, const ToolFormat::Markers& some) {
  all.insert(all.end(), some.begin(), some.end());
}

constexpr size_t kBlanksMax = 64;  // before the next marker; more are text

// Removes blanks and one of `markers` at the front.
MarkerMatch skip_marker(std::string_view& text, const ToolFormat::Markers& markers,
                        bool has_ended) {
  text.remove_prefix(std::min({text.find_first_not_of(kBlanks), text.size(), kBlanksMax}));
  PendingText pending;
  pending.append(text.substr(0, kNameBytesMax));
  if (has_ended) pending.end(false);
  const MarkerMatch match = match_front(pending, markers);
  text.remove_prefix(match.bytes);
  return match;
}

}  // namespace

ValueEndFinder::ValueEndFinder(const ToolFormat& format, const ToolSet& tools)
    : format_(format), tools_(tools), ends_{format.value_end, format.key_begin} {
  add(ends_, format.call_end);
  for (const ToolFormat::KeyEnd& end : format.key_ends) key_ends_.push_back(end.marker);
  add(openers_, format.call_begin);
  add(openers_, format.section_begin);
}

ValueEnd ValueEndFinder::find(const PendingText& pending, std::string_view tool,
                              size_t from) const {
  const std::string_view rest = pending.rest();
  for (;;) {
    const MarkerPlace place = find_marker(rest.substr(from), ends_);
    if (!place.found()) {
      const size_t tail = pending.has_ended() ? 0 : partial_marker_tail(rest.substr(from), ends_);
      return {EndKind::kNone, rest.size() - tail, 0};
    }
    const size_t at = from + place.at;
    const size_t bytes = ends_[place.index].size();
    if (place.index == 0) return {EndKind::kFound, at, bytes};
    const std::string_view after = rest.substr(at + bytes);
    const EndKind kind = place.index == 1 ? judge_key(after, tool, pending.has_ended())
                                          : judge_call_end(after, pending.has_ended());
    if (kind != EndKind::kNone) return {kind, at, 0};
    from = at + 1;
  }
}

// A key that the tool has, else the value only contains its marker.
EndKind ValueEndFinder::judge_key(std::string_view after, std::string_view tool,
                                  bool has_ended) const {
  const MarkerPlace end = find_marker(after.substr(0, 2 * kNameBytesMax), key_ends_);
  if (std::min(end.at, after.size()) > kNameBytesMax) return EndKind::kNone;
  if (!end.found()) return has_ended ? EndKind::kNone : EndKind::kUnsure;
  const std::string_view key = without_blanks(after.substr(0, end.at));
  return tools_.has_parameter(tool, key) ? EndKind::kFound : EndKind::kNone;
}

EndKind ValueEndFinder::judge_call_end(std::string_view after, bool has_ended) const {
  if (skip_marker(after, format_.section_end, has_ended).is_partial()) return EndKind::kUnsure;
  const MarkerMatch opener = skip_marker(after, openers_, has_ended);
  if (opener.is_partial()) return EndKind::kUnsure;
  return opener.is_whole() || after.empty() ? EndKind::kFound : EndKind::kNone;
}

}  // namespace lockstep
