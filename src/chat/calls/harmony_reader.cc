// Harmony, gpt-oss's format: messages with headers that name their recipient.
//
//   <|start|>assistant<|channel|>commentary to=functions.NAME
//   <|constrain|>json<|message|>{}<|call|>
//
// The output begins after the first "<|start|>assistant". The recipient may also follow the role.
#include <algorithm>
#include <optional>

#include "chat/calls/call_reader.h"
#include "chat/calls/output_reader.h"

namespace lockstep {
namespace {

constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kConstrain = "<|constrain|>";
constexpr std::string_view kRecipient = "to=";
constexpr std::string_view kRole = "assistant";
constexpr std::string_view kFunctionsPrefix = "functions.";
constexpr std::string_view kJson = "json";
constexpr size_t kHeaderBytesMax = 1024;

struct Header {
  std::string_view channel;
  std::string_view recipient;
  std::string_view type;  // of the content
};

std::string_view first_word(std::string_view text) {
  return text.substr(0, std::min(text.find_first_of(" \t\r\n<"), text.size()));
}

// The last of `mark`'s words that is not empty.
std::string_view last_word_after(std::string_view text, std::string_view mark) {
  std::string_view last;
  for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at)) {
    at += mark.size();
    const std::string_view word = first_word(text.substr(at));
    if (!word.empty()) last = word;
  }
  return last;
}

// Models sometimes begin a header again inside it, then the last word of each kind counts. A
// message to the assistant itself has no recipient.
Header parse_header(std::string_view text) {
  Header header{last_word_after(text, kChannel), last_word_after(text, kRecipient),
                last_word_after(text, kConstrain)};
  if (header.recipient == kRole) header.recipient = {};
  return header;
}

class HarmonyReader final : public OutputReader {
 public:
  explicit HarmonyReader(const OutputReaderOptions& options)
      : tools_(*options.tools), ends_(options.format->call_end) {
    ends_.push_back(kStart);
    reasoning_ends_ = ends_;
    for (const std::string_view channel :
         {"<|channel|>analysis", "<|channel|>commentary", "<|channel|>final"}) {
      reasoning_ends_.push_back(channel);
    }
    if (options.continues_text) state_ = State::kBody;
    if (options.reasoning_is_open) begin_body(true);
  }

  void read(PendingText& pending, DeltaWriter& out) override {
    while (step(pending, out)) {
    }
  }
  bool is_reasoning() const override { return state_ == State::kBody && is_reasoning_; }

 private:
  enum class State { kHeader, kBody, kArguments, kBetween };

  bool step(PendingText& pending, DeltaWriter& out) {
    switch (state_) {
      case State::kHeader:
        return read_header(pending, out);
      case State::kBody:
        return read_body(pending, out);
      case State::kArguments:
        return read_arguments(pending, out);
      default:
        return read_between(pending);
    }
  }

  bool read_header(PendingText& pending, DeltaWriter& out) {
    const std::string_view rest = pending.rest();
    const bool may_be_header = begins_header(rest);
    const size_t end = rest.substr(0, kHeaderBytesMax).find(kMessage);
    if (may_be_header && begin_unmarked_call(pending, end, out)) return true;
    if (!may_be_header || end == std::string_view::npos) {
      const bool is_short = may_be_header && rest.size() < kHeaderBytesMax;
      if (pending.empty() || (is_short && !pending.has_ended())) return false;
      // Output without a header is text; a truncated header is dropped.
      if (is_short && pending.is_truncated()) pending.take(rest.size());
      begin_body(false);
      return true;
    }
    const std::string header_text(rest.substr(0, end + kMessage.size()));
    pending.take(header_text.size());
    const Header header = parse_header(header_text);
    const std::string_view name = called_name(header);
    if (!name.empty()) {
      begin_call(name, out);
    } else {
      begin_body(header.channel == "analysis" && header.recipient.empty());
      if (!header.recipient.empty()) out.content(header_text);  // an unknown recipient
    }
    return true;
  }

  // Arguments directly after the header of a call: its last marker is missing.
  bool begin_unmarked_call(PendingText& pending, size_t header_end, DeltaWriter& out) {
    const size_t brace = pending.rest().substr(0, kHeaderBytesMax).find('{');
    if (brace == std::string_view::npos || brace > header_end) return false;
    const std::string header_text(pending.rest().substr(0, brace));
    const Header header = parse_header(header_text);
    const std::string_view name = called_name(header);
    if (name.empty() || header.channel.empty()) return false;
    pending.take(brace);
    begin_call(name, out);
    return true;
  }

  // The function that a message calls; empty: none.
  std::string_view called_name(const Header& header) const {
    if (tools_.empty()) return {};
    std::string_view name = header.recipient;
    // Some models name the function as the content's type instead of as the recipient.
    const bool is_type =
        name.empty() && header.type.substr(0, kFunctionsPrefix.size()) == kFunctionsPrefix;
    if (is_type) name = header.type;
    const bool is_function = name.substr(0, kFunctionsPrefix.size()) == kFunctionsPrefix;
    if (is_function) name.remove_prefix(kFunctionsPrefix.size());
    if (tools_.has(name)) return name;
    // Or write its type without a space after the name.
    const std::string_view shorter =
        name.substr(0, name.size() - std::min(name.size(), kJson.size()));
    if (name.substr(shorter.size()) == kJson && tools_.has(shorter)) return shorter;
    const CallContext context{nullptr, &tools_, !is_function || is_type};
    return is_call_name(context, name) ? name : std::string_view();
  }

  void begin_call(std::string_view name, DeltaWriter& out) {
    out.call(name, "");
    arguments_.emplace(ends_);
    writer_ = {};
    state_ = State::kArguments;
  }

  static bool begins_header(std::string_view rest) {
    const size_t blanks = std::min(rest.find_first_not_of(kBlanks), rest.size());
    if (blanks == rest.size()) return true;
    for (const std::string_view begin : {kChannel, kMessage, kRecipient}) {
      const size_t size = std::min(begin.size(), rest.size() - blanks);
      if (rest.substr(blanks, size) == begin.substr(0, size)) return true;
    }
    return false;
  }

  void begin_body(bool is_reasoning) {
    is_reasoning_ = is_reasoning;
    has_text_ = false;
    state_ = State::kBody;
  }

  bool read_body(PendingText& pending, DeltaWriter& out) {
    const std::string_view rest = pending.rest();
    // The end of a reasoning is sometimes missing before the next header.
    const ToolFormat::Markers& ends = is_reasoning_ ? reasoning_ends_ : ends_;
    const MarkerPlace end = find_marker(rest, ends);
    const size_t tail = pending.has_ended() ? 0 : partial_marker_tail(rest, ends);
    const size_t size = end.found() ? end.at : rest.size() - tail;
    send(rest.substr(0, size), out);
    pending.take(size);
    if (end.found()) state_ = end.index < ends_.size() ? State::kBetween : State::kHeader;
    return end.found();
  }

  // Texts of one kind are joined as lines.
  void send(std::string_view text, DeltaWriter& out) {
    if (text.empty()) return;
    bool& has_any = is_reasoning_ ? has_reasoning_ : has_content_;
    const std::string_view separator = has_any && !has_text_ ? "\n" : "";
    if (is_reasoning_) {
      out.reasoning(separator);
      out.reasoning(text);
    } else {
      out.content(separator);
      out.content(text);
    }
    has_text_ = true;
    has_any = true;
  }

  bool read_arguments(PendingText& pending, DeltaWriter& out) {
    std::string text;
    const bool is_last = arguments_->read(pending, text);
    writer_.write(text, out);
    if (is_last) state_ = State::kBetween;
    return is_last;
  }

  // Reads up to the next header. Unexpected text in between is content.
  bool read_between(PendingText& pending) {
    if (!pending.skip_blanks()) return false;
    const MarkerMatch match = match_front(pending, reasoning_ends_);
    if (match.is_partial()) return false;
    if (match.is_whole() && match.index >= ends_.size()) {
      state_ = State::kHeader;  // whose beginning is missing
      return true;
    }
    if (!match.is_whole()) {
      begin_body(false);
      return true;
    }
    if (ends_[match.index] != kStart) {
      pending.take(match.bytes);
      return true;
    }
    return read_role(pending);
  }

  bool read_role(PendingText& pending) {
    const MarkerMatch role = match_front(pending, {kRole}, kStart.size());
    if (role.is_partial()) return false;
    pending.take(kStart.size() + role.bytes);
    state_ = State::kHeader;
    return true;
  }

  const ToolSet& tools_;
  ToolFormat::Markers ends_;  // of a message
  ToolFormat::Markers reasoning_ends_;
  State state_ = State::kHeader;
  bool is_reasoning_ = false;
  bool has_text_ = false;  // in this message
  bool has_reasoning_ = false;
  bool has_content_ = false;
  std::optional<ArgumentsReader> arguments_;
  ArgumentsWriter writer_;
};

}  // namespace

std::unique_ptr<OutputReader> make_harmony_reader(const OutputReaderOptions& options) {
  return std::make_unique<HarmonyReader>(options);
}

}  // namespace lockstep
