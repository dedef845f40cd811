#include "chat/calls/bare_ends.h"

#include <algorithm>
#include <cctype>

#include "chat/calls/call_reader.h"

namespace lockstep {
namespace {

constexpr size_t kTailBytesMax = 64;  // of brackets or of a key, before a marker
constexpr size_t kGapBytesMax = 64;   // of white space before what must follow a value
constexpr size_t kDigitsMax = 4096;   // of a number
constexpr std::string_view kBrackets = "}])";
constexpr size_t kNowhere = std::string_view::npos;

bool is_key_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-';
}

// Bytes at the end of `text` that are closing brackets and white space.
size_t bracket_tail(std::string_view text) {
  size_t size = 0;
  while (size < std::min(text.size(), kTailBytesMax)) {
    const char letter = text[text.size() - size - 1];
    const bool is_part = kBrackets.find(letter) != kNowhere || kBlanks.find(letter) != kNowhere;
    if (!is_part) break;
    ++size;
  }
  return size;
}

// Bytes at the end of `text` that are a comma and a key, perhaps with its colon.
size_t key_tail(std::string_view text) {
  const auto last = [&](size_t size) {
    return size < std::min(text.size(), kTailBytesMax) ? text[text.size() - size - 1] : '\0';
  };
  size_t size = 0;
  const auto skip_blanks = [&] {
    while (last(size) != '\0' && kBlanks.find(last(size)) != kNowhere) ++size;
  };
  skip_blanks();
  if (last(size) == ':') ++size;
  skip_blanks();
  while (is_key_letter(last(size))) ++size;
  skip_blanks();
  return last(size) == ',' ? size + 1 : 0;
}

// KEY of ", KEY:", or empty.
std::string_view key_of_tail(std::string_view tail) {
  tail = without_blanks(tail);
  if (tail.empty() || tail.back() != ':') return {};
  tail.remove_suffix(1);
  return without_blanks(tail.substr(1));
}

// Whether a value without quotes is as it should be.
bool is_bare_word(std::string_view word) {
  for (const std::string_view known : {"", "true", "false", "null", "True", "False", "None"}) {
    if (word == known) return true;
  }
  return word.size() <= kDigitsMax && word.find_first_not_of("0123456789+-.eE") == kNowhere;
}

ToolFormat::Markers text_ends(const ToolFormat& format) {
  ToolFormat::Markers ends{format.value_end};
  ends.insert(ends.end(), format.call_end.begin(), format.call_end.end());
  return ends;
}

}  // namespace

BareEnds::BareEnds(const ToolFormat& format, const ToolSet& tools)
    : format_(format), tools_(tools), text_ends_(text_ends(format)) {}

// Whether the call ends before `after`.
BareEnds::Next BareEnds::call_end(std::string_view after, bool has_ended) const {
  const size_t gap = std::min(after.find_first_not_of(kBlanks), after.size());
  if (gap > kGapBytesMax) return Next::kOther;
  after.remove_prefix(gap);
  if (after.empty()) return has_ended ? Next::kValueEnd : Next::kUnsure;
  for (const std::string_view end : format_.call_end) {
    if (after.starts_with(end)) return Next::kValueEnd;
    if (!has_ended && end.starts_with(after)) return Next::kUnsure;
  }
  return Next::kOther;
}

// Whether a value can end before `after`.
BareEnds::Next BareEnds::value_end(std::string_view after, bool has_ended) const {
  const size_t gap = after.find_first_not_of(kBlanks);
  const bool is_structure = gap <= kGapBytesMax && gap < after.size() &&
                            (after[gap] == ',' || kBrackets.find(after[gap]) != kNowhere);
  return is_structure ? Next::kValueEnd : call_end(after, has_ended);
}

// Whether a key that the tool has follows a comma before `after`.
BareEnds::Next BareEnds::next_key(std::string_view after, Place place, bool has_ended) const {
  const size_t end = after.substr(0, kNameBytesMax).find_first_of(":=,{}[]()<|>");
  if (end == kNowhere) {
    return has_ended || after.size() >= kNameBytesMax ? Next::kOther : Next::kUnsure;
  }
  const bool is_key = after[end] == ':' || after[end] == '=';
  const std::string_view key = without_blanks(after.substr(0, end));
  return is_key && tools_.has_parameter(place.tool, key) ? Next::kValueEnd : Next::kOther;
}

// Where a string ends whose own end is missing, given that it ends in `text`.
size_t BareEnds::forgotten_end(std::string_view text, Place place) const {
  const size_t tail = bracket_tail(text);
  size_t end = text.size();
  size_t brackets = 0;
  for (size_t at = text.size(); at > text.size() - tail && brackets < place.depth; --at) {
    if (kBrackets.find(text[at - 1]) == kNowhere) continue;
    end = at - 1;
    ++brackets;
  }
  return end;
}

ValueEnd BareEnds::of_text(const PendingText& pending, Place place, size_t from) const {
  using Kind = ValueEnd::Kind;
  const std::string_view rest = pending.rest();
  const auto without_tail = [&](std::string_view text) {
    return text.size() - std::max(bracket_tail(text), key_tail(text));
  };
  const MarkerPlace marker = find_marker(rest.substr(from), text_ends_);
  if (!marker.found()) {
    if (pending.has_ended()) return {Kind::kFound, forgotten_end(rest, place), 0};
    return {Kind::kNone,
            without_tail(rest.substr(0, rest.size() - partial_marker_tail(rest, text_ends_))), 0};
  }
  const size_t at = from + marker.at;
  const std::string_view text = rest.substr(0, at);
  if (marker.index > 0) return {Kind::kFound, forgotten_end(text, place), 0};
  const size_t bytes = format_.value_end.size();
  const Next after = value_end(rest.substr(at + bytes), pending.has_ended());
  if (after == Next::kUnsure) return {Kind::kUnsure, without_tail(text), 0};
  const size_t tail = key_tail(text);
  const std::string_view key = key_of_tail(text.substr(at - tail));
  // The marker may begin the value of the next key.
  const bool is_next = after == Next::kOther && place.depth == 1 && !key.empty() &&
                       tools_.has_parameter(place.tool, key);
  return is_next ? ValueEnd{Kind::kFound, at - tail, 0} : ValueEnd{Kind::kFound, at, bytes};
}

// Whether `word` ends at the bracket or comma with which `after` begins.
BareEnds::Next BareEnds::after_word(std::string_view word, std::string_view after, Place place,
                                    bool has_ended) const {
  if (place.depth > 1 || is_bare_word(word)) return Next::kValueEnd;
  const bool is_comma = after.front() == ',';
  after.remove_prefix(1);
  return is_comma ? next_key(after, place, has_ended) : call_end(after, has_ended);
}

ValueEnd BareEnds::of_word(const PendingText& pending, Place place, size_t from) const {
  using Kind = ValueEnd::Kind;
  const std::string_view rest = pending.rest();
  for (;;) {
    // No marker contains such a letter, so each part of the text is searched once.
    const size_t at = std::min(rest.find_first_of(",}])", from), rest.size());
    const MarkerPlace marker = find_marker(rest.substr(from, at - from), text_ends_);
    if (marker.found()) {
      const size_t bytes = marker.index == 0 ? format_.value_end.size() : 0;
      return {Kind::kFound, from + marker.at, bytes};
    }
    if (at == rest.size()) break;
    const Next after =
        after_word(without_blanks(rest.substr(0, at)), rest.substr(at), place, pending.has_ended());
    if (after == Next::kValueEnd) return {Kind::kFound, at, 0};
    if (after == Next::kUnsure) return {Kind::kUnsure, at, 0};
    from = at + 1;
  }
  if (pending.has_ended()) return {Kind::kFound, rest.size(), 0};
  return {Kind::kNone, std::max(from, rest.size() - partial_marker_tail(rest, text_ends_)), 0};
}

ValueEnd BareEnds::of_quotes(const PendingText& pending, size_t from) const {
  using Kind = ValueEnd::Kind;
  const std::string_view rest = pending.rest();
  const char quote = rest.front();
  const MarkerPlace end = find_marker(rest.substr(from), text_ends_);
  const size_t tail = pending.has_ended() ? 0 : partial_marker_tail(rest, text_ends_);
  const size_t stop = end.found() ? from + end.at : rest.size() - tail;
  size_t at = std::max<size_t>(from, 1);
  for (; at < stop; ++at) {
    if (rest[at] == '\\') {
      if (at + 1 >= stop) break;
      ++at;
      continue;
    }
    if (rest[at] != quote) continue;
    const std::string_view after = rest.substr(at + 1);
    const size_t gap = after.find_first_not_of(kBlanks);
    const bool is_key = gap < after.size() && (after[gap] == ':' || after[gap] == '=');
    const Next found = is_key ? Next::kValueEnd : value_end(after, pending.has_ended());
    if (found == Next::kUnsure) return {Kind::kUnsure, at, 0};
    if (found == Next::kValueEnd) return {Kind::kFound, at, 1};
  }
  const bool is_last = end.found() || pending.has_ended() || rest.size() > kHeldBytesMax;
  return {is_last ? Kind::kNone : Kind::kUnsure, std::min(at, stop), 0};
}

}  // namespace lockstep
