// Calls with one tag per argument and its value as text: the tool's schema determines the JSON
// types. Texts are sent as they arrive, other values whole.
#include <algorithm>

#include "chat/calls/call_reader.h"

namespace lockstep {
namespace {

// Text escaped as a JSON string, without the quotes.
std::string regex_escaped(std::string_view text) {
  std::string quoted;
  append_json_string(quoted, text);
  return quoted.substr(1, quoted.size() - 2);
}

class TaggedCallReader final : public CallReader {
 public:
  explicit TaggedCallReader(const CallContext& context)
      : format_(*context.format), tools_(*context.tools), header_(context) {
    between_ = {format_.key_begin};
    for (const ToolFormat::KeyEnd& end : format_.key_ends) key_ends_.push_back(end.marker);
  }

  Progress read(PendingText& pending, DeltaWriter& out) override {
    if (state_ == State::kHeader) {
      const Progress progress = header_.read(pending);
      if (progress != Progress::kDone) return progress;
      pending.unmark();
      out.call(header_.name(), header_.id());
      state_ = State::kBetween;
    }
    std::string text;
    while (state_ != State::kEnd && step(pending, text)) {
    }
    if (pending.has_ended()) end_early(pending, text);
    writer_.write(text, out);
    return state_ == State::kEnd ? Progress::kDone : Progress::kMore;
  }

 private:
  enum class State { kHeader, kBetween, kKey, kValueBegin, kText, kValue, kEnd };

  // False: more text is needed. Appends the arguments' JSON parsed so far to `out`.
  bool step(PendingText& pending, std::string& out) {
    switch (state_) {
      case State::kBetween:
        return read_between(pending, out);
      case State::kKey:
        return read_key(pending, out);
      case State::kValueBegin:
        return read_value_begin(pending, out);
      case State::kText:
        return read_text(pending, out);
      default:
        return read_value(pending, out);
    }
  }

  bool read_between(PendingText& pending, std::string& out) {
    if (!pending.skip_blanks()) return false;
    const MarkerMatch match = match_front(pending, between_);
    if (match.is_partial()) return false;
    if (!match.is_whole()) return end(out);
    pending.take(match.bytes);
    state_ = State::kKey;
    return true;
  }

  bool read_key(PendingText& pending, std::string& out) {
    const std::string_view rest = pending.rest();
    const MarkerPlace place = find_marker(rest, key_ends_);
    const size_t size =
        place.found() ? place.at : rest.size() - partial_marker_tail(rest, key_ends_);
    if (size > kNameBytesMax) return end(out);
    if (!place.found()) return false;
    key_ = without_blanks(rest.substr(0, place.at));
    switch (format_.key_ends[place.index].form) {
      case ToolFormat::ValueForm::kText:
        types_ = kJsonString;
        break;
      case ToolFormat::ValueForm::kJson:
        types_ = kJsonAny & ~kJsonString;
        break;
      case ToolFormat::ValueForm::kBySchema:
        types_ = tools_.types_of(header_.name(), key_);
        break;
    }
    pending.take(place.at + key_ends_[place.index].size());
    state_ = State::kValueBegin;
    return true;
  }

  bool read_value_begin(PendingText& pending, std::string& out) {
    if (!format_.value_begin.empty() && !has_value_begin_) {
      if (!pending.skip_blanks()) return false;
      const MarkerMatch match = match_front(pending, {format_.value_begin});
      if (match.is_partial()) return false;
      if (!match.is_whole()) return end(out);
      pending.take(match.bytes);
      has_value_begin_ = true;
    }
    if (format_.value_has_lines) {
      if (pending.empty()) return false;
      if (pending.rest().front() == '\n') pending.take(1);
    }
    has_value_begin_ = false;
    out += (has_values_ ? ", " : "{");
    append_json_string(out, key_);
    out += ": ";
    has_values_ = true;
    searched_ = 0;
    scanned_ = 0;
    hidden_end_ = std::string_view::npos;
    is_in_string_ = false;
    is_escaped_ = false;
    state_ = types_ == kJsonString ? State::kText : State::kValue;
    if (state_ == State::kText) out += '"';
    return true;
  }

  bool read_text(PendingText& pending, std::string& out) {
    const std::string_view rest = pending.rest();
    const size_t at = rest.find(format_.value_end);
    if (at != std::string_view::npos) {
      out += regex_escaped(without_line_end(rest.substr(0, at))) + '"';
      pending.take(at + format_.value_end.size());
      state_ = State::kBetween;
      return true;
    }
    size_t size = rest.size() - partial_marker_tail(rest, {format_.value_end});
    if (format_.value_has_lines && size > 0 && rest[size - 1] == '\n') --size;
    out += regex_escaped(rest.substr(0, size));
    pending.take(size);
    return false;
  }

  bool read_value(PendingText& pending, std::string& out) {
    const std::string_view rest = pending.rest();
    size_t at = find_value_end(rest);
    // An unclosed quote must not hide the end.
    const bool is_last = pending.has_ended() || rest.size() > kHeldBytesMax;
    if (at == std::string_view::npos && is_last) at = hidden_end_;
    if (at != std::string_view::npos) {
      out += value_as_json(without_line_end(rest.substr(0, at)), types_);
      pending.take(at + format_.value_end.size());
      state_ = State::kBetween;
      return true;
    }
    if (rest.size() <= kHeldBytesMax) return false;
    out += '"';
    state_ = State::kText;
    return true;
  }

  // Finds the value's end, not inside a string of an array or object.
  size_t find_value_end(std::string_view rest) {
    for (;;) {
      const size_t at = rest.find(format_.value_end, searched_);
      if (at == std::string_view::npos) {
        const size_t unsure = std::min(rest.size(), format_.value_end.size());
        searched_ = std::max(searched_, rest.size() - unsure);
        return at;
      }
      if (!is_in_json_string(rest.substr(0, at))) return at;
      hidden_end_ = std::min(hidden_end_, at);
      searched_ = at + 1;
    }
  }

  // Whether `text`, an extension of the last call's, ends inside a string.
  bool is_in_json_string(std::string_view text) {
    const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
    const bool is_array = text.substr(begin, 1) == "[" && (types_ & kJsonArray) != 0;
    const bool is_object = text.substr(begin, 1) == "{" && (types_ & kJsonObject) != 0;
    if (!is_array && !is_object) return false;
    for (; scanned_ < text.size(); ++scanned_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (text[scanned_] == '"') {
        is_in_string_ = !is_in_string_;
      } else {
        is_escaped_ = is_in_string_ && text[scanned_] == '\\';
      }
    }
    return is_in_string_;
  }

  // The text ended inside the call. Closes what is open, unless the model was cut off.
  void end_early(PendingText& pending, std::string& out) {
    if (state_ == State::kEnd) return;
    const std::string_view rest = pending.rest();
    const bool is_truncated = pending.is_truncated();
    if (state_ == State::kText) {
      out += regex_escaped(is_truncated ? rest : without_line_end(rest));
      if (!is_truncated) out += '"';
    } else if (state_ == State::kValue) {
      out += is_truncated ? std::string(without_blanks(rest))
                          : value_as_json(without_line_end(rest), types_);
    }
    if (is_truncated || state_ == State::kText || state_ == State::kValue) {
      pending.take(rest.size());
    }
    if (is_truncated) {
      state_ = State::kEnd;
    } else {
      end(out);
    }
  }

  bool end(std::string& out) {
    out += has_values_ ? "}" : "{}";
    state_ = State::kEnd;
    return false;
  }

  std::string_view without_line_end(std::string_view value) const {
    if (format_.value_has_lines && !value.empty() && value.back() == '\n') value.remove_suffix(1);
    return value;
  }

  const ToolFormat& format_;
  const ToolSet& tools_;
  CallHeader header_;
  ToolFormat::Markers between_;
  ToolFormat::Markers key_ends_;
  State state_ = State::kHeader;
  std::string key_;
  JsonTypes types_ = kJsonAny;
  // While a value is held:
  size_t searched_ = 0;                         // bytes in which its end does not begin
  size_t hidden_end_ = std::string_view::npos;  // the first end found inside a string
  size_t scanned_ = 0;                          // bytes covered by the two flags below
  bool is_in_string_ = false;
  bool is_escaped_ = false;
  bool has_values_ = false;
  bool has_value_begin_ = false;
  ArgumentsWriter writer_;
};

}  // namespace

std::unique_ptr<CallReader> make_tagged_call_reader(const CallContext& context) {
  return std::make_unique<TaggedCallReader>(context);
}

}  // namespace lockstep
