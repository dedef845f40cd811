#include "chat/calls/bare_arguments.h"

#include <algorithm>

#include "chat/calls/call_reader.h"
#include "chat/calls/json_scanner.h"

namespace lockstep {
namespace {

// The end of a bare key, and of what is none.
constexpr std::string_view kKeyEnds = ":={[(,}])";

bool is_one_of(char letter, std::string_view letters) {
  return letters.find(letter) != std::string_view::npos;
}

// The text between quotes, as JSON would have it if it can.
std::string unquoted(std::string_view inner) {
  const auto parsed = parse_untrusted_json("\"" + std::string(inner) + "\"");
  return std::string(parsed.ok() && parsed.value().is_string()
                         ? std::string_view(parsed.value().get_string())
                         : inner);
}

}  // namespace

BareArguments::BareArguments(const ToolFormat& format, const ToolSet& tools)
    : format_(format), tools_(tools), ends_(format, tools) {}

void BareArguments::begin(std::string_view tool, char bracket, std::string& out) {
  tool_ = tool;
  open_ = bracket;
  out += '{';
}

bool BareArguments::read(PendingText& pending, std::string& out) {
  while (state_ != State::kEnd && step(pending, out)) {
  }
  if (state_ != State::kEnd && pending.has_ended()) end_early(pending, out);
  return state_ == State::kEnd;
}

bool BareArguments::step(PendingText& pending, std::string& out) {
  switch (state_) {
    case State::kItem:
      return read_item(pending, out);
    case State::kKey:
      return read_key(pending, out);
    case State::kColon:
      return read_colon(pending);
    case State::kValue:
      return read_value(pending, out);
    case State::kText:
      return read_text(pending, out);
    case State::kQuoted:
      return read_quoted(pending, out);
    default:
      return read_held(pending, out);
  }
}

bool BareArguments::go_to(State state) {
  state_ = state;
  searched_ = 0;
  return true;
}

// Before a key or an item of a list, or a bracket that closes something.
bool BareArguments::read_item(PendingText& pending, std::string& out) {
  if (!pending.skip_blanks(",")) return false;
  const MarkerMatch end = match_front(pending, format_.call_end);
  if (end.is_partial()) return false;
  if (end.is_whole()) return close_all(out);
  const char letter = pending.rest().front();
  if (is_one_of(letter, "}])")) {
    pending.take(1);
    close(letter, out);
    return true;
  }
  return go_to(open_.back() == ']' ? State::kValue : State::kKey);
}

bool BareArguments::read_key(PendingText& pending, std::string& out) {
  const MarkerMatch begin = match_front(pending, {format_.value_begin});
  if (begin.is_partial()) return false;
  if (begin.is_whole()) {
    const std::string_view rest = pending.rest().substr(begin.bytes);
    const size_t end = rest.find(format_.value_end, searched_);
    if (end == std::string_view::npos) {
      searched_ = rest.size() - std::min(rest.size(), format_.value_end.size());
      return rest.size() > kHeldBytesMax ? close_all(out) : false;
    }
    key_ = rest.substr(0, end);
    pending.take(begin.bytes + end + format_.value_end.size());
    return go_to(State::kColon);
  }
  if (!begins_quotes(pending.rest().front())) return read_bare_key(pending, out);
  const ValueEnd end = ends_.of_quotes(pending, searched_);
  searched_ = end.at;
  if (end.kind == ValueEnd::Kind::kUnsure) return false;
  quotes_are_letters_ = end.kind == ValueEnd::Kind::kNone;
  if (quotes_are_letters_) return read_bare_key(pending, out);
  key_ = unquoted(pending.rest().substr(1, end.at - 1));
  pending.take(end.at + end.bytes);
  return go_to(State::kColon);
}

// A key without a value gets null.
bool BareArguments::read_bare_key(PendingText& pending, std::string& out) {
  const std::string_view rest = pending.rest();
  ToolFormat::Markers markers = format_.call_end;
  markers.push_back(format_.value_begin);
  const MarkerPlace marker = find_marker(rest.substr(0, 2 * kNameBytesMax), markers);
  const size_t end = std::min({rest.find_first_of(kKeyEnds), marker.at, rest.size()});
  if (end > kNameBytesMax) return close_all(out);
  if (end == rest.size()) return false;
  key_ = without_blanks(rest.substr(0, end));
  const bool is_text = end == marker.at && markers[marker.index] == format_.value_begin;
  const bool is_letter = end != marker.at;
  const bool is_sign = is_letter && is_one_of(rest[end], ":=(");
  const bool is_bracket = is_letter && is_one_of(rest[end], "{[");
  if (is_bracket && key_.empty()) pending.take(1);  // where a key belongs
  if (key_.empty() && !is_sign) return go_to(State::kItem);
  pending.take(end + (is_sign ? 1 : 0));
  if (is_sign || is_bracket || is_text) return go_to(State::kValue);
  write_value("null", out);
  return go_to(State::kItem);
}

bool BareArguments::read_colon(PendingText& pending) {
  if (!pending.skip_blanks()) return false;
  if (is_one_of(pending.rest().front(), ":=")) pending.take(1);
  return go_to(State::kValue);
}

bool BareArguments::read_value(PendingText& pending, std::string& out) {
  if (!pending.skip_blanks()) return false;
  const MarkerMatch begin = match_front(pending, {format_.value_begin});
  if (begin.is_partial()) return false;
  pending.take(begin.bytes);
  if (begin.is_whole() && (types() & kJsonString) == 0) return go_to(State::kHeldText);
  const char letter = begin.is_whole() ? '\0' : pending.rest().front();
  if (begin.is_whole()) {
    write_key(out);
    out += '"';
    return go_to(State::kText);
  }
  if (is_one_of(letter, "{[")) {
    if (open_.size() == JsonScanner::kDepthMax) return close_all(out);
    pending.take(1);
    open(letter == '{' ? '}' : ']', out);
    return true;
  }
  return go_to(begins_quotes(letter) ? State::kQuoted : State::kWord);
}

bool BareArguments::read_text(PendingText& pending, std::string& out) {
  const ValueEnd end = ends_.of_text(pending, place(), 0);
  out += json_escaped(pending.rest().substr(0, end.at));
  pending.take(end.at + end.bytes);
  if (end.kind != ValueEnd::Kind::kFound) return false;
  out += '"';
  needs_comma_ = true;
  return go_to(State::kItem);
}

// A value whose JSON is known only at its end.
bool BareArguments::read_held(PendingText& pending, std::string& out) {
  const bool is_word = state_ == State::kWord;
  const std::string_view rest = pending.rest();
  ValueEnd end = is_word ? ends_.of_word(pending, place(), searched_)
                         : ends_.of_text(pending, place(), searched_);
  searched_ = end.at;
  const bool is_found = end.kind == ValueEnd::Kind::kFound;
  if (!is_found && rest.size() <= kHeldBytesMax) return false;
  if (!is_found) end = {ValueEnd::Kind::kFound, rest.size(), 0};
  const std::string_view text = rest.substr(0, end.at);
  // Only a parameter that has to be a text makes a text of a number.
  const JsonTypes as = !is_word || types() == kJsonString ? types() : kJsonAny & ~kJsonString;
  write_value(value_as_json(is_word ? without_blanks(text) : text, as), out);
  pending.take(end.at + end.bytes);
  return go_to(State::kItem);
}

bool BareArguments::read_quoted(PendingText& pending, std::string& out) {
  const ValueEnd end = ends_.of_quotes(pending, searched_);
  searched_ = end.at;
  if (end.kind == ValueEnd::Kind::kUnsure) return false;
  quotes_are_letters_ = end.kind == ValueEnd::Kind::kNone;
  if (quotes_are_letters_) return go_to(State::kWord);
  const std::string text = unquoted(pending.rest().substr(1, end.at - 1));
  const bool is_text = (types() & kJsonString) != 0;
  write_value(is_text ? json_string(text) : value_as_json(text, types()), out);
  pending.take(end.at + end.bytes);
  return go_to(State::kItem);
}

bool BareArguments::begins_quotes(char letter) const {
  return !quotes_are_letters_ && is_one_of(letter, "\"'");
}

// The types of the value that is being read; known only for arguments, not inside them.
JsonTypes BareArguments::types() const {
  return open_.size() == 1 ? tools_.types_of(tool_, key_) : kJsonAny;
}

void BareArguments::write_key(std::string& out) {
  if (needs_comma_) out += ", ";
  if (open_.back() != ']') out += json_string(key_) + ": ";
}

void BareArguments::write_value(std::string_view json, std::string& out) {
  write_key(out);
  out += json;
  needs_comma_ = true;
}

void BareArguments::open(char bracket, std::string& out) {
  write_key(out);
  out += bracket == '}' ? '{' : '[';
  open_ += bracket;
  needs_comma_ = false;
  go_to(State::kItem);
}

// Closes what `bracket` closes and all inside it; or nothing, if it closes nothing.
void BareArguments::close(char bracket, std::string& out) {
  const size_t place = open_.rfind(bracket);
  if (place != std::string::npos) close_from(place, out);
}

void BareArguments::close_from(size_t place, std::string& out) {
  while (open_.size() > place) {
    out += open_.back() == ']' ? ']' : '}';
    open_.pop_back();
  }
  needs_comma_ = true;
  if (open_.empty()) state_ = State::kEnd;
}

bool BareArguments::close_all(std::string& out) {
  close_from(0, out);
  return false;
}

// The text ended inside the arguments. Closes what is open, unless the model was cut off.
void BareArguments::end_early(PendingText& pending, std::string& out) {
  if (!pending.is_truncated()) {
    close_all(out);
    return;
  }
  const std::string_view rest = pending.rest();
  if (state_ == State::kText) out += json_escaped(rest);
  if (state_ == State::kHeldText || state_ == State::kWord || state_ == State::kQuoted) {
    write_key(out);
    out +=
        state_ == State::kHeldText ? "\"" + json_escaped(rest) : std::string(without_blanks(rest));
  }
  pending.take(rest.size());
  state_ = State::kEnd;
}

}  // namespace lockstep
