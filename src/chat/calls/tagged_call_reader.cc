// Calls with one tag per argument and its value as text: the tool's schema determines the JSON
// types. Texts are sent as they arrive, other values whole. Some models write JSON instead of tags.
#include <algorithm>
#include <optional>

#include "chat/calls/call_reader.h"
#include "chat/calls/value_end.h"

namespace lockstep {
namespace {

class TaggedCallReader final : public CallReader {
 public:
  explicit TaggedCallReader(const CallContext& context)
      : format_(*context.format),
        tools_(*context.tools),
        header_(context),
        value_ends_(*context.format, *context.tools),
        json_(format_.call_end) {
    between_ = {format_.value_end, format_.key_begin};
    const ToolFormat::Mistakes& mistakes = format_.mistakes;
    between_.insert(between_.end(), mistakes.key_begin.begin(), mistakes.key_begin.end());
    for (const ToolFormat::KeyEnd& end : format_.key_ends) key_ends_.push_back(end.marker);
    key_end_count_ = key_ends_.size();
    key_ends_.insert(key_ends_.end(), mistakes.key_end.begin(), mistakes.key_end.end());
    if (!format_.value_begin.empty()) {
      before_value_ = {format_.value_begin};
      before_value_.insert(before_value_.end(), key_ends_.begin(), key_ends_.end());
    }
  }

  Progress read(PendingText& pending, DeltaWriter& out) override {
    if (state_ == State::kHeader) {
      const Progress progress = header_.read(pending);
      if (progress != Progress::kDone) return progress;
      name_ = header_.name();
      state_ = State::kName;
    }
    std::string text;
    if (state_ == State::kName) {
      if (!read_name_end(pending)) return Progress::kMore;
      pending.unmark();
      out.call(name_, header_.id());
    }
    while (state_ != State::kEnd && step(pending, text)) {
    }
    if (pending.has_ended()) end_early(pending, text);
    writer_.write(text, out);
    return state_ == State::kEnd ? Progress::kDone : Progress::kMore;
  }

 private:
  enum class State { kHeader, kName, kBetween, kKey, kValueBegin, kText, kValue, kJson, kEnd };

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
      case State::kJson:
        return read_json(pending, out);
      default:
        return read_value(pending, out);
    }
  }

  // If the beginning of the first key is missing, what seems to be the name is the name of a tool
  // and the key.
  bool read_name_end(PendingText& pending) {
    state_ = State::kBetween;
    const std::string_view tool =
        tools_.has(name_) ? std::string_view() : tools_.name_before(name_);
    if (tool.empty() || format_.value_begin.empty()) return true;
    const MarkerMatch match = match_front(pending, key_ends_);
    if (match.is_partial()) state_ = State::kName;
    if (!match.is_whole()) return !match.is_partial();
    set_key(std::string_view(name_).substr(tool.size()), tool, format_.key_ends[match.index].form);
    name_ = tool;
    pending.take(match.bytes);
    return true;
  }

  bool read_between(PendingText& pending, std::string& out) {
    if (!pending.skip_blanks()) return false;
    const bool is_json = !has_values_ && pending.rest().front() == '{';
    if (is_json) state_ = State::kJson;
    if (is_json) return true;
    const MarkerMatch match = match_front(pending, between_);
    if (match.is_partial()) return false;
    if (!match.is_whole()) return end(out);
    pending.take(match.bytes);
    if (match.index > 0) state_ = State::kKey;  // else the end of a value was written twice
    return true;
  }

  bool read_json(PendingText& pending, std::string& out) {
    if (!json_.read(pending, out)) return false;
    state_ = State::kEnd;
    return false;
  }

  bool read_key(PendingText& pending, std::string& out) {
    if (!pending.skip_blanks()) return false;
    const MarkerMatch again = match_front(pending, {format_.key_begin});
    if (again.is_partial()) return false;
    pending.take(again.bytes);
    const std::string_view rest = pending.rest();
    const MarkerPlace place = find_marker(rest, key_ends_);
    const size_t size =
        place.found() ? place.at : rest.size() - partial_marker_tail(rest, key_ends_);
    if (size > kNameBytesMax) return end(out);
    if (!place.found()) return false;
    const bool is_proper = place.index < key_end_count_;
    set_key(rest.substr(0, place.at), name_,
            is_proper ? format_.key_ends[place.index].form : ToolFormat::ValueForm::kBySchema);
    pending.take(place.at + key_ends_[place.index].size());
    return true;
  }

  void set_key(std::string_view key, std::string_view tool, ToolFormat::ValueForm form) {
    key_ = without_blanks(key);
    switch (form) {
      case ToolFormat::ValueForm::kText:
        types_ = kJsonString;
        break;
      case ToolFormat::ValueForm::kJson:
        types_ = kJsonAny & ~kJsonString;
        break;
      case ToolFormat::ValueForm::kBySchema:
        types_ = tools_.types_of(tool, key_);
        break;
    }
    state_ = State::kValueBegin;
  }

  bool read_value_begin(PendingText& pending, std::string& out) {
    while (!format_.value_begin.empty() && !has_value_begin_) {
      if (!pending.skip_blanks()) return false;
      const MarkerMatch match = match_front(pending, before_value_);
      if (match.is_partial()) return false;
      // The end of the key may be there twice, and the beginning of the value not at all.
      has_value_begin_ = !match.is_whole() || match.index == 0;
      pending.take(match.bytes);
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
    hidden_end_.reset();
    is_in_string_ = false;
    is_escaped_ = false;
    state_ = types_ == kJsonString ? State::kText : State::kValue;
    if (state_ == State::kText) out += '"';
    return true;
  }

  bool read_text(PendingText& pending, std::string& out) {
    const std::string_view rest = pending.rest();
    const ValueEnd end = value_ends_.find(pending, name_, 0);
    if (end.kind == ValueEnd::Kind::kFound) {
      out += json_escaped(without_line_end(rest.substr(0, end.at))) + '"';
      pending.take(end.at + end.bytes);
      state_ = State::kBetween;
      return true;
    }
    size_t size = end.at;
    if (format_.value_has_lines && size > 0 && rest[size - 1] == '\n') --size;
    out += json_escaped(rest.substr(0, size));
    pending.take(size);
    return false;
  }

  bool read_value(PendingText& pending, std::string& out) {
    const std::string_view rest = pending.rest();
    std::optional<ValueEnd> end = find_value_end(pending);
    // An unclosed quote must not hide the end.
    const bool is_last = pending.has_ended() || rest.size() > kHeldBytesMax;
    if (!end && is_last) end = hidden_end_;
    if (end) {
      out += value_as_json(without_line_end(rest.substr(0, end->at)), types_);
      pending.take(end->at + end->bytes);
      state_ = State::kBetween;
      return true;
    }
    if (rest.size() <= kHeldBytesMax) return false;
    out += '"';
    state_ = State::kText;
    return true;
  }

  // Finds the value's end, not inside a string of an array or object.
  std::optional<ValueEnd> find_value_end(const PendingText& pending) {
    for (;;) {
      const ValueEnd end = value_ends_.find(pending, name_, searched_);
      searched_ = end.at;
      if (end.kind != ValueEnd::Kind::kFound) return std::nullopt;
      if (!is_in_json_string(pending.rest().substr(0, end.at))) return end;
      if (!hidden_end_) hidden_end_ = end;
      searched_ = end.at + 1;
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
    if (state_ == State::kEnd || state_ == State::kJson) return;
    const std::string_view rest = pending.rest();
    const bool is_truncated = pending.is_truncated();
    if (state_ == State::kText) {
      out += json_escaped(is_truncated ? rest : without_line_end(rest));
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
  const ValueEndFinder value_ends_;
  ArgumentsReader json_;
  ToolFormat::Markers between_;
  ToolFormat::Markers before_value_;
  ToolFormat::Markers key_ends_;
  size_t key_end_count_ = 0;  // of key_ends_ that are no mistakes
  State state_ = State::kHeader;
  std::string name_;
  std::string key_;
  JsonTypes types_ = kJsonAny;
  // While a value is held:
  size_t searched_ = 0;                 // bytes in which its end does not begin
  std::optional<ValueEnd> hidden_end_;  // the first end found inside a string
  size_t scanned_ = 0;                  // bytes covered by the two flags below
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
