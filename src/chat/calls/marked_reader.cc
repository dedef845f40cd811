#include <algorithm>
#include <optional>

#include "chat/calls/after_json.h"
#include "chat/calls/call_reader.h"
#include "chat/calls/output_reader.h"

namespace lockstep {
namespace {

void append_markers(ToolFormat::Markers& all, const ToolFormat::Markers& some) {
  all.insert(all.end(), some.begin(), some.end());
}

class MarkedReader final : public OutputReader {
 public:
  explicit MarkedReader(const OutputReaderOptions& options)
      : format_(*options.format), tools_(*options.tools) {
    if (!tools_.empty()) {
      append_markers(openers_, format_.call_begin);
      append_markers(openers_, format_.section_begin);
      append_markers(openers_, format_.mistakes.section_begin);
      append_markers(between_, openers_);
      append_markers(between_, format_.section_end);
      append_markers(between_, format_.mistakes.section_end);
      append_markers(between_, format_.call_end);
      append_markers(between_, format_.after_arguments);
    }
    reasoning_ends_ = {format_.reasoning_end};
    if (format_.calls_end_reasoning) append_markers(reasoning_ends_, openers_);
    if (options.reasoning_is_open && !format_.reasoning_begin.empty()) begin_reasoning();
    if (options.continues_text) state_ = State::kText;
  }

  void read(PendingText& pending, DeltaWriter& out) override {
    while (step(pending, out)) {
    }
  }
  bool is_reasoning() const override { return state_ == State::kReasoning; }

 private:
  enum class State { kStart, kReasoning, kText, kSection, kCallBegin, kCall };

  // False: more text is needed.
  bool step(PendingText& pending, DeltaWriter& out) {
    const bool needs_text =
        state_ == State::kStart || state_ == State::kReasoning || state_ == State::kText;
    if (pending.empty() && needs_text) return false;
    switch (state_) {
      case State::kStart:
        return read_start(pending);
      case State::kReasoning:
        return read_reasoning(pending, out);
      case State::kText:
        return read_text(pending, out);
      case State::kSection:
        return read_section(pending, out);
      case State::kCallBegin:
        return read_call_begin(pending);
      default:
        return read_call(pending, out);
    }
  }

  // At the start of the reply, and after the reasoning.
  bool read_start(PendingText& pending) {
    const std::string_view rest = pending.rest();
    const size_t blanks = std::min(rest.find_first_not_of(kBlanks), rest.size());
    const bool is_all = blanks == rest.size();
    if (blanks > kLeadingBlanksMax) {
      state_ = State::kText;
      return true;
    }
    if (is_all && !pending.has_ended()) return false;
    if (!had_reasoning_ && !format_.reasoning_begin.empty()) {
      const MarkerMatch match = match_front(pending, {format_.reasoning_begin}, blanks);
      if (match.is_partial()) return false;
      if (match.is_whole()) {
        pending.take(blanks + match.bytes);
        begin_reasoning();
        return true;
      }
    }
    const bool may_be_bare = !tools_.empty() && !format_.bare_begin.empty();
    const MarkerMatch fence =
        may_be_bare ? match_front(pending, format_.mistakes.fences, blanks) : MarkerMatch();
    if (fence.is_partial()) return false;
    const bool is_bare =
        may_be_bare && (fence.is_whole() || (!is_all && format_.bare_begin.find(rest[blanks]) !=
                                                            std::string_view::npos));
    if (is_bare) {
      pending.mark();
      begin_section(true);
      return true;
    }
    const MarkerMatch prefix = prefix_of_call(pending, blanks);
    if (prefix.is_partial()) return false;
    if (prefix.is_whole()) {
      pending.mark();
      begin_section(true);
      begin_call(make_call_reader({&format_, &tools_, true}));
      is_after_json_ = true;
      return true;
    }
    // Line ends before the text belong to the format, other white space to the text.
    const size_t line = rest.substr(0, blanks).rfind('\n');
    if (line != std::string_view::npos) pending.take(line + 1);
    state_ = State::kText;
    return true;
  }

  // The beginning of a call that has no other marker.
  MarkerMatch prefix_of_call(const PendingText& pending, size_t blanks) const {
    const bool may_be_there = format_.prefix_begins_call && !tools_.empty();
    return may_be_there ? match_front(pending, {format_.name_prefix}, blanks) : MarkerMatch();
  }

  void begin_reasoning() {
    had_reasoning_ = true;
    reasoning_has_begun_ = false;
    state_ = State::kReasoning;
  }

  bool read_reasoning(PendingText& pending, DeltaWriter& out) {
    if (!reasoning_has_begun_ && !pending.skip_blanks()) return false;
    reasoning_has_begun_ = true;
    const std::string_view rest = pending.rest();
    const MarkerPlace end = find_marker(rest, reasoning_ends_);
    if (!end.found()) {
      const size_t size = sendable_bytes(pending, reasoning_ends_);
      out.reasoning(rest.substr(0, size));
      pending.take(size);
      return false;
    }
    out.reasoning(before_marker(rest.substr(0, end.at)));
    const bool is_closed = end.index == 0;  // else a call begins
    pending.take(end.at + (is_closed ? format_.reasoning_end.size() : 0));
    state_ = is_closed ? State::kStart : State::kText;
    return true;
  }

  bool read_text(PendingText& pending, DeltaWriter& out) {
    const std::string_view rest = pending.rest();
    const MarkerPlace opener = find_marker(rest, openers_);
    if (!opener.found()) {
      const size_t size = sendable_bytes(pending, openers_);
      out.content(rest.substr(0, size));
      pending.take(size);
      return false;
    }
    const size_t size = before_marker(rest.substr(0, opener.at)).size();
    out.content(rest.substr(0, size));
    pending.take(size);
    pending.mark();
    pending.take(opener.at - size + openers_[opener.index].size());
    if (opener.index >= format_.call_begin.size()) {
      begin_section(false);
    } else {
      // Outside a section only a known name shows that the marker is not merely mentioned.
      needs_known_name_ = !format_.section_begin.empty();
      section_is_bare_ = false;
      is_list_ = false;
      state_ = State::kCallBegin;
    }
    return true;
  }

  void begin_section(bool is_bare) {
    state_ = State::kSection;
    section_is_bare_ = is_bare;
    section_has_calls_ = false;
    section_has_ended_ = false;
    fence_is_open_ = false;
    gap_ = {};
  }

  void begin_call(std::unique_ptr<CallReader> call) {
    state_ = State::kCall;
    call_ = std::move(call);
  }

  // After the marker of a call, which may be there twice. Calls as JSON may come in a fence or a
  // list, and in formats whose calls have another form.
  bool read_call_begin(PendingText& pending) {
    if (!pending.skip_blanks() && !pending.has_ended()) return false;
    ToolFormat::Markers skipped = format_.call_begin;
    append_markers(skipped, format_.mistakes.fences);
    const MarkerMatch match = match_front(pending, skipped);
    if (match.is_partial()) return false;
    pending.take(match.bytes);
    if (match.is_whole()) return true;
    const bool may_be_json = !format_.argument_keys.empty();
    if (may_be_json && !is_list_ && pending.rest().substr(0, 1) == "[") {
      pending.take(1);
      is_list_ = true;
      return true;
    }
    const bool is_json = may_be_json && pending.rest().substr(0, 1) == "{";
    const bool is_odd = is_json && format_.body != ToolFormat::Body::kJsonCall;
    const CallContext context{&format_, &tools_, needs_known_name_ || is_odd};
    begin_call(is_json ? make_json_call_reader(context) : make_call_reader(context));
    is_after_json_ = is_json || format_.body == ToolFormat::Body::kBareKeys;
    return true;
  }

  // Between calls.
  bool read_section(PendingText& pending, DeltaWriter& out) {
    if (is_after_json_ && !section_has_ended_) {
      const std::optional<bool> goes_on = read_after_json(pending);
      if (goes_on) return *goes_on;
    }
    if (section_is_bare_ && !section_has_calls_) {
      if (!pending.skip_blanks() && !pending.has_ended()) return false;
      const MarkerMatch fence = match_front(pending, format_.mistakes.fences);
      if (!pending.empty() && fence.is_partial()) return false;
      pending.take(fence.bytes);
      fence_is_open_ = fence_is_open_ || fence.is_whole();
    }
    if (section_has_calls_ && fence_is_open_) {
      const AfterJson after = after_fence(pending);
      if (after.kind == AfterJson::Kind::kWait) return false;
      pending.take(after.bytes);
      if (after.bytes > 0) fence_is_open_ = false;
    }
    const bool is_empty = !skip_filler(pending);
    const MarkerMatch match = match_front(pending, between_);
    if (!is_empty && match.is_partial()) return false;
    const bool is_late = section_has_ended_ && match.bytes == 1;  // a bracket of the text
    if (match.is_whole() && !is_late && take_marker(pending, match)) return true;
    if (!is_empty && !match.is_whole() && begin_bare_call(pending)) return true;
    if (is_empty && !pending.has_ended()) return false;
    end_section(pending, out);
    return true;
  }

  bool skip_filler(PendingText& pending) {
    const std::string_view before = pending.rest();
    const bool is_more =
        pending.skip_blanks(section_has_ended_ ? std::string_view() : format_.section_filler);
    const std::string_view skipped = before.substr(0, before.size() - pending.rest().size());
    if (!skipped.empty() && gap_ != "\n") {
      gap_ = skipped.find('\n') != std::string_view::npos ? "\n" : " ";
    }
    return is_more;
  }

  // After a call as JSON. Nullopt: what follows is read as between other calls.
  std::optional<bool> read_after_json(PendingText& pending) {
    const AfterJson after = after_json(pending, format_, between_, is_list_);
    if (after.kind == AfterJson::Kind::kWait) return false;
    const bool is_call = after.kind == AfterJson::Kind::kCall;
    if (is_call) pending.mark();
    pending.take(after.bytes);
    is_after_json_ = is_call;
    if (!is_call) return std::nullopt;
    begin_call(make_json_call_reader({&format_, &tools_, true}));
    return true;
  }

  // False: this marker cannot continue the section.
  bool take_marker(PendingText& pending, const MarkerMatch& match) {
    const ToolFormat::Mistakes& mistakes = format_.mistakes;
    const size_t section_begins = format_.call_begin.size();
    const size_t section_ends =
        section_begins + format_.section_begin.size() + mistakes.section_begin.size();
    const size_t call_ends =
        section_ends + format_.section_end.size() + mistakes.section_end.size();
    if (match.index >= section_begins && !section_has_calls_) return false;
    if (match.index < section_ends && !pending.is_marked()) pending.mark();
    pending.take(match.bytes);
    if (match.index < section_begins) {
      needs_known_name_ = false;
      section_is_bare_ = false;
      is_list_ = false;
      state_ = State::kCallBegin;
    } else if (match.index < section_ends) {
      begin_section(false);
    } else {
      gap_ = {};
      const bool ends_section = match.index < call_ends || format_.section_begin.empty();
      const bool is_fence = match.index >= call_ends + format_.call_end.size();
      section_has_ended_ = section_has_ended_ || (ends_section && !is_fence);
    }
    return true;
  }

  // Starts a call that begins with its brace, the first one in Python, or one without its marker.
  bool begin_bare_call(PendingText& pending) {
    if (section_has_ended_) return false;
    if (!format_.call_begin.empty()) return begin_unmarked_call(pending);
    const CallContext context{&format_, &tools_, section_is_bare_};
    const bool is_json = pending.rest().front() == '{';
    const bool is_python = format_.has_python_calls && !section_has_calls_ && !is_json;
    if (!is_json && !is_python) return false;
    if (!pending.is_marked()) pending.mark();
    begin_call(is_json ? make_call_reader(context) : make_python_call_reader(context));
    is_after_json_ = is_json;
    is_list_ = false;
    return true;
  }

  // The first call of a section may lack its own marker, if its name is known.
  bool begin_unmarked_call(PendingText& pending) {
    const std::string_view first = pending.rest().substr(0, 1);
    const bool is_json = !format_.argument_keys.empty() && (first == "{" || first == "[");
    const bool is_headed = format_.body == ToolFormat::Body::kJsonArguments;
    if (section_has_calls_ || !pending.is_marked() || (!is_json && !is_headed)) return false;
    needs_known_name_ = true;
    is_list_ = false;
    state_ = State::kCallBegin;
    return true;
  }

  // A section without a call was not a section: all of it is text.
  void end_section(PendingText& pending, DeltaWriter& out) {
    if (!section_has_calls_) {
      hand_over(pending, out);
    } else if (out.has_content() && !pending.empty()) {
      out.content(gap_);
    }
    state_ = State::kText;
  }

  bool read_call(PendingText& pending, DeltaWriter& out) {
    switch (call_->read(pending, out)) {
      case CallReader::Progress::kMore:
        return false;
      case CallReader::Progress::kDone:
        section_has_calls_ = true;
        section_has_ended_ = false;
        gap_ = {};
        state_ = State::kSection;
        break;
      case CallReader::Progress::kNoCall:
        hand_over(pending, out);
        state_ = State::kText;
        break;
    }
    call_.reset();
    return true;
  }

  // Ends a held call that turned out not to be one: its text becomes content. If the model was cut
  // off inside it, it is dropped, unless it may have been text from the start.
  void hand_over(PendingText& pending, DeltaWriter& out) {
    const bool is_cut_off = pending.is_truncated() && !section_is_bare_;
    if (!is_cut_off) out.content(pending.since_mark());
    if (is_cut_off) pending.take(pending.rest().size());
    pending.unmark();
  }

  static constexpr size_t kLeadingBlanksMax = 64;

  const ToolFormat& format_;
  const ToolSet& tools_;
  ToolFormat::Markers openers_;  // of calls and sections, in a text
  ToolFormat::Markers between_;  // those and the ends of sections and calls, in a section
  ToolFormat::Markers reasoning_ends_;
  State state_ = State::kStart;
  bool had_reasoning_ = false;
  bool reasoning_has_begun_ = false;
  bool section_is_bare_ = false;
  bool section_has_calls_ = false;
  bool section_has_ended_ = false;  // only another section may follow
  bool fence_is_open_ = false;      // before the calls of a section
  bool needs_known_name_ = false;   // of the call that begins
  bool is_list_ = false;            // a list of calls as JSON has begun
  bool is_after_json_ = false;      // the last call ended with a bracket
  std::string_view gap_;            // between the last call and the text after it
  std::unique_ptr<CallReader> call_;
};

}  // namespace

std::unique_ptr<OutputReader> make_marked_reader(const OutputReaderOptions& options) {
  return std::make_unique<MarkedReader>(options);
}

size_t sendable_bytes(const PendingText& pending, const ToolFormat::Markers& markers) {
  const std::string_view rest = pending.rest();
  if (pending.has_ended()) return rest.size();
  const std::string_view text = rest.substr(0, rest.size() - partial_marker_tail(rest, markers));
  return markers.empty() ? text.size() : before_marker(text).size();
}

std::string_view before_marker(std::string_view text) {
  return text.substr(0, text.size() - std::min(blank_tail(text), kHeldBlanksMax));
}

}  // namespace lockstep
