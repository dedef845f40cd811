// Calls as a JSON object with the name and the arguments. Some models write "function" instead of
// "name", or put both in an object of that key, as in OpenAI's API.
#include <algorithm>

#include "chat/calls/call_reader.h"

namespace lockstep {
namespace {

class JsonCallReader final : public CallReader {
 public:
  explicit JsonCallReader(const CallContext& context)
      : context_(context), format_(*context.format), arguments_(stops_of(format_)) {}

  Progress read(PendingText& pending, DeltaWriter& out) override {
    for (;;) {
      switch (step(pending, out)) {
        case Step::kGoOn:
          break;
        case Step::kNoCall:
          return Progress::kNoCall;
        case Step::kDone:
          return finish(pending, out);
        case Step::kWait:
          if (pending.has_ended()) return end_early(pending, out);
          if (is_announced_ || pending.held_bytes() <= kHeldBytesMax) return Progress::kMore;
          if (name_.empty() || state_ != State::kArguments) return Progress::kNoCall;
          announce(pending, out);  // without an id, which may follow them
          send(out);
          return Progress::kMore;
      }
    }
  }

 private:
  enum class State { kOpen, kKey, kColon, kValue, kArguments, kNext };
  enum class Step { kGoOn, kWait, kDone, kNoCall };

  static ToolFormat::Markers stops_of(const ToolFormat& format) {
    return format.call_end.empty() ? format.section_begin : format.call_end;
  }

  Step step(PendingText& pending, DeltaWriter& out) {
    if (state_ == State::kArguments) return read_arguments(pending, out);
    if (!scanner_begun_ && !pending.skip_blanks()) return Step::kWait;
    const char letter = pending.empty() ? '\0' : pending.rest().front();
    switch (state_) {
      case State::kOpen:
        return expect(pending, letter == '{', State::kKey);
      case State::kKey:
        return read_key(pending, letter);
      case State::kColon:
        return expect(pending, letter == ':', State::kValue);
      case State::kValue:
        return read_value(pending, out);
      default:
        return read_next(pending, letter);
    }
  }

  Step expect(PendingText& pending, bool is_there, State next) {
    if (!is_there) return unexpected();
    pending.take(1);
    state_ = next;
    return Step::kGoOn;
  }

  // With a name and arguments it is a call, regardless of what follows.
  Step unexpected() const { return !name_.empty() && has_arguments_ ? Step::kDone : Step::kNoCall; }

  Step read_key(PendingText& pending, char letter) {
    if (!scanner_begun_ && letter == '}') {
      pending.take(1);
      const bool is_call = has_arguments_ || !context_.needs_known_name;
      return is_call && !name_.empty() ? Step::kDone : Step::kNoCall;
    }
    if (!scanner_begun_ && letter != '"') return unexpected();
    if (!scan(pending)) return is_broken() ? unexpected() : Step::kWait;
    const auto key = parse_json(scanned_);
    if (!key.ok()) return unexpected();
    key_ = key.value().get_string();
    const bool is_known = is_arguments_key(key_) || key_ == "name" || key_ == "function" ||
                          key_ == "type" || key_ == "id";
    if (!is_known && context_.needs_known_name && !is_announced_) return Step::kNoCall;
    state_ = State::kColon;
    return Step::kGoOn;
  }

  Step read_value(PendingText& pending, DeltaWriter& out) {
    if (!scanner_begun_ && is_arguments_key(key_) && !has_arguments_) {
      state_ = State::kArguments;  // they are held until the name is known
      if (!name_.empty() && !format_.id_follows_arguments) announce(pending, out);
      return Step::kGoOn;
    }
    if (!scan(pending)) return is_broken() ? unexpected() : Step::kWait;
    state_ = State::kNext;
    if (key_ != "name" && key_ != "function" && key_ != "id") return Step::kGoOn;
    const auto value = parse_json(scanned_);
    if (value.ok() && key_ == "function" && value.value().is_object()) {
      return read_function(value.value());
    }
    if (!value.ok() || !value.value().is_string()) {
      return key_ == "id" ? Step::kGoOn : unexpected();
    }
    if (key_ == "id") {
      id_ = value.value().get_string();
    } else if (name_.empty()) {
      if (!is_call_name(context_, value.value().get_string())) return Step::kNoCall;
      name_ = value.value().get_string();
    }
    return Step::kGoOn;
  }

  Step read_function(const Json& function) {
    for (const auto& member : function.get_object()) {
      if (is_arguments_key(member.key()) && !has_arguments_) {
        const Json& arguments = member.value();
        text_ = arguments.is_string() ? std::string(arguments.get_string()) : dump_json(arguments);
        has_arguments_ = true;
      }
    }
    const Json* name = find(function, "name");
    if (!name || !name->is_string() || !name_.empty()) return unexpected();
    if (!is_call_name(context_, name->get_string())) return Step::kNoCall;
    name_ = name->get_string();
    return Step::kGoOn;
  }

  Step read_arguments(PendingText& pending, DeltaWriter& out) {
    has_arguments_ = arguments_.read(pending, text_);
    if (is_announced_) send(out);
    if (!has_arguments_) return Step::kWait;
    state_ = State::kNext;
    return Step::kGoOn;
  }

  Step read_next(PendingText& pending, char letter) {
    if (letter == ',') return expect(pending, true, State::kKey);
    if (letter != '}') return unexpected();
    state_ = State::kKey;  // which consumes the brace
    return Step::kGoOn;
  }

  Progress end_early(PendingText& pending, DeltaWriter& out) {
    const bool has_begun = has_arguments_ || state_ == State::kArguments;
    if (name_.empty() || !has_begun) return Progress::kNoCall;
    return finish(pending, out);
  }

  Progress finish(PendingText& pending, DeltaWriter& out) {
    if (is_announced_) return Progress::kDone;
    announce(pending, out);
    if (text_.empty() && !pending.is_truncated()) text_ = "{}";
    send(out);
    return Progress::kDone;
  }

  void announce(PendingText& pending, DeltaWriter& out) {
    pending.unmark();
    is_announced_ = true;
    out.call(name_, id_);
  }

  void send(DeltaWriter& out) {
    writer_.write(text_, out);
    text_.clear();
  }

  // Reads one value into `scanned_`. False: it is incomplete or malformed.
  bool scan(PendingText& pending) {
    if (!scanner_begun_) {
      scanner_ = {};
      scanned_.clear();
      scanner_begun_ = true;
    }
    pending.take(scanner_.push(pending.rest(), scanned_));
    if (scanner_.state() != JsonScanner::State::kComplete) return false;
    scanner_begun_ = false;
    return true;
  }
  bool is_broken() const { return scanner_.state() == JsonScanner::State::kBroken; }

  bool is_arguments_key(std::string_view key) const {
    const auto& keys = format_.argument_keys;
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  }

  const CallContext context_;
  const ToolFormat& format_;
  State state_ = State::kOpen;
  JsonScanner scanner_;
  bool scanner_begun_ = false;
  std::string scanned_;
  std::string key_;
  std::string name_;
  std::string id_;
  ArgumentsReader arguments_;
  ArgumentsWriter writer_;
  bool has_arguments_ = false;
  bool is_announced_ = false;
  std::string text_;  // of the arguments, not sent yet
};

}  // namespace

std::unique_ptr<CallReader> make_json_call_reader(const CallContext& context) {
  return std::make_unique<JsonCallReader>(context);
}

}  // namespace lockstep
