#include "chat/calls/call_reader.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/utf8.h"

namespace lockstep {
namespace {

using Progress = CallReader::Progress;

constexpr std::string_view kNumberedPrefix = "functions.";

bool is_name_letter(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return std::isalnum(byte) != 0 || byte >= 0x80 ||
         std::string_view("_-.:/").find(letter) != std::string_view::npos;
}

// NAME of "functions.NAME:3".
std::string_view numbered_name(std::string_view id) {
  if (id.substr(0, kNumberedPrefix.size()) == kNumberedPrefix) {
    id.remove_prefix(kNumberedPrefix.size());
  }
  const size_t colon = id.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == id.size()) return id;
  const std::string_view digits = id.substr(colon + 1);
  const bool is_number = digits.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? id.substr(0, colon) : id;
}

// NAME of "functions_NAME_3", "functionsNAME3" and the like, if it is the name of a tool.
std::string_view repaired_name(std::string_view id, const ToolSet& tools) {
  const auto drop = [&id](std::string_view separators, bool is_last) {
    if (id.empty()) return;
    const char letter = is_last ? id.back() : id.front();
    if (separators.find(letter) == std::string_view::npos) return;
    is_last ? id.remove_suffix(1) : id.remove_prefix(1);
  };
  id.remove_prefix(kNumberedPrefix.size() - 1);
  drop("._", false);
  if (tools.has(id)) return id;
  const size_t digits = id.find_last_not_of("0123456789");
  id = id.substr(0, digits == std::string_view::npos ? 0 : digits + 1);
  drop("_:", true);
  return tools.has(id) ? id : std::string_view();
}

// Corrects arguments that are JSON but not an object.
std::string object_of(const std::string& value) {
  const auto parsed = parse_json(value);
  if (parsed.value().is_null()) return "{}";
  if (!parsed.value().is_string()) return value;
  std::string inner(parsed.value().get_string());
  const auto object = parse_json(inner);
  return object.ok() && object.value().is_object() ? inner : value;
}

}  // namespace

std::unique_ptr<CallReader> make_call_reader(const CallContext& context) {
  switch (context.format->body) {
    case ToolFormat::Body::kJsonCall:
      return make_json_call_reader(context);
    case ToolFormat::Body::kJsonArguments:
      return make_headed_call_reader(context);
    case ToolFormat::Body::kBareKeys:
      return make_bare_call_reader(context);
    case ToolFormat::Body::kTaggedValues:
      break;
  }
  return make_tagged_call_reader(context);
}

std::string json_escaped(std::string_view text) {
  const std::string quoted = json_string(text);
  return quoted.substr(1, quoted.size() - 2);
}

bool is_call_name(const CallContext& context, std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax) return false;
  if (context.tools->has(name)) return true;
  return !context.needs_known_name && std::all_of(name.begin(), name.end(), is_name_letter);
}

CallHeader::CallHeader(const CallContext& context)
    : context_(context), ends_(context.format->name_end), stops_(context.format->name_stops) {
  const ToolFormat::Mistakes& mistakes = context.format->mistakes;
  ends_.insert(ends_.end(), mistakes.name_end.begin(), mistakes.name_end.end());
  stops_ += mistakes.name_stops;
  if (!context.format->id_begin.empty()) ends_.push_back(context.format->id_begin);
}

// False: more text is needed.
bool CallHeader::skip_prefix(PendingText& pending) {
  ToolFormat::Markers prefixes;
  for (const std::string_view prefix :
       {context_.format->name_prefix, context_.format->mistakes.name_prefix}) {
    if (!prefix.empty()) prefixes.push_back(prefix);
  }
  const MarkerMatch prefix = match_front(pending, prefixes);
  if (prefix.is_partial()) return false;
  pending.take(prefix.bytes);
  return true;
}

Progress CallHeader::read(PendingText& pending) {
  const ToolFormat& format = *context_.format;
  const Progress incomplete = pending.has_ended() ? Progress::kNoCall : Progress::kMore;
  if (!has_begun_) {
    if (!pending.skip_blanks()) return incomplete;
    if (!skip_prefix(pending)) return Progress::kMore;
    has_begun_ = true;
  }
  for (;;) {
    const std::string_view rest = pending.rest();
    const MarkerPlace end = find_marker(rest, ends_);
    const size_t stop = rest.find_first_of(stops_);
    const size_t at = std::min(end.at, stop);
    const bool is_whole = at != std::string_view::npos;
    // A possible beginning of a marker is not part of the name.
    const size_t size = is_whole ? at : rest.size() - partial_marker_tail(rest, ends_);
    if (size > kNameBytesMax) return Progress::kNoCall;
    if (!is_whole) return incomplete;
    const Progress progress = finish(without_blanks(rest.substr(0, at)));
    const bool is_marker = end.at < stop;
    const bool begins_id = is_marker && !is_in_id_ && ends_[end.index] == format.id_begin;
    if (progress == Progress::kNoCall) return progress;
    pending.take(at + (is_marker ? ends_[end.index].size() : 0));
    if (!begins_id) return progress;
    is_in_id_ = true;
  }
}

Progress CallHeader::finish(std::string_view text) {
  if (is_in_id_) {
    id_ = text;
    return Progress::kDone;
  }
  const std::string_view name = context_.format->name_holds_id ? numbered_name(text) : text;
  const bool has_number = name.data() + name.size() != text.data() + text.size();
  if (has_number) id_ = text;
  name_ = name;
  const bool is_misspelt = context_.format->name_holds_id && !context_.tools->has(name_) &&
                           text.substr(0, kNumberedPrefix.size() - 1) ==
                               kNumberedPrefix.substr(0, kNumberedPrefix.size() - 1);
  const std::string_view repaired =
      is_misspelt ? repaired_name(text, *context_.tools) : std::string_view();
  if (!repaired.empty()) {
    name_ = repaired;
    id_.clear();  // a client that sends it back would have the model repeat it
  }
  return is_call_name(context_, name_) ? Progress::kDone : Progress::kNoCall;
}

bool ArgumentsReader::read(PendingText& pending, std::string& text) {
  if (kind_ == Kind::kUnknown) {
    if (!pending.skip_blanks()) {
      if (pending.has_ended() && !pending.is_truncated()) text += "{}";
      return pending.has_ended();
    }
    const MarkerMatch stop = match_front(pending, stops_);
    if (stop.is_partial()) return false;
    if (stop.is_whole()) {
      text += "{}";
      return true;
    }
    kind_ = pending.rest().front() == '{' ? Kind::kObject : Kind::kOther;
  }
  if (kind_ == Kind::kObject) return read_object(pending, text);
  if (kind_ == Kind::kOther) return read_other(pending, text);
  return read_broken(pending, text);
}

// A stop outside a string ends an object whose brackets do not match.
bool ArgumentsReader::read_object(PendingText& pending, std::string& text) {
  for (;;) {
    const std::string_view rest = pending.rest();
    const MarkerPlace stop = find_marker(rest, stops_);
    const size_t tail = pending.has_ended() ? 0 : partial_marker_tail(rest, stops_);
    pending.take(scanner_.push(rest.substr(0, stop.found() ? stop.at : rest.size() - tail), text));
    if (scanner_.state() == JsonScanner::State::kMore && scanner_.is_in_string()) {
      const size_t size = stop.found() ? stops_[stop.index].size() : tail;
      pending.take(scanner_.push(pending.rest().substr(0, size), text));
      if (stop.found()) continue;
    }
    if (scanner_.state() == JsonScanner::State::kComplete) return true;
    if (scanner_.state() == JsonScanner::State::kBroken) break;
    const bool is_last = stop.found() || pending.has_ended();
    if (is_last) scanner_.flush(text);
    return is_last;
  }
  kind_ = Kind::kBroken;
  return read_broken(pending, text);
}

bool ArgumentsReader::read_other(PendingText& pending, std::string& text) {
  pending.take(scanner_.push(pending.rest(), held_));
  const bool is_complete = scanner_.state() == JsonScanner::State::kComplete;
  if (is_complete && parse_json(held_).ok()) {
    text += object_of(held_);
    return true;
  }
  const bool is_more = scanner_.state() == JsonScanner::State::kMore && !pending.has_ended();
  if (is_more && held_.size() <= kHeldBytesMax) return false;
  scanner_.flush(held_);
  text += held_;
  kind_ = Kind::kBroken;
  return read_broken(pending, text);
}

bool ArgumentsReader::read_broken(PendingText& pending, std::string& text) {
  const std::string_view rest = pending.rest();
  const MarkerPlace stop = find_marker(rest, stops_);
  const size_t held = pending.has_ended() ? 0 : partial_marker_tail(rest, stops_);
  const size_t end = stop.found() ? stop.at : rest.size() - held;
  text += rest.substr(0, end);
  pending.take(end);
  return stop.found() || pending.has_ended();
}

void ArgumentsWriter::write(std::string_view text, DeltaWriter& out) {
  if (text.empty()) return;
  if (!std::exchange(has_written_, true) && text.size() > kAtOnceMax) {
    const size_t first = first_utf8_character(text).bytes;
    out.arguments(text.substr(0, first));
    text.remove_prefix(first);
    out.end_delta();
  }
  out.arguments(text);
}

}  // namespace lockstep
