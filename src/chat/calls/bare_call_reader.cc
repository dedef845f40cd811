// Calls with bare keys: NAME{KEY:VALUE}, also as NAME(KEY=VALUE).
#include "chat/calls/bare_arguments.h"
#include "chat/calls/call_reader.h"

namespace lockstep {
namespace {

class BareCallReader final : public CallReader {
 public:
  explicit BareCallReader(const CallContext& context)
      : context_(context), header_(context), arguments_(*context.format, *context.tools) {}

  Progress read(PendingText& pending, DeltaWriter& out) override {
    if (!has_header_) {
      const Progress progress = header_.read(pending);
      if (progress != Progress::kDone) return progress;
      has_header_ = true;
    }
    std::string text;
    if (!has_begun_) {
      const Progress progress = begin(pending, text);
      if (progress != Progress::kDone) return progress;
      has_begun_ = true;
      pending.unmark();
      out.call(name(), header_.id());
    }
    const bool is_done = has_ended_ || arguments_.read(pending, text);
    writer_.write(text, out);
    return is_done ? Progress::kDone : Progress::kMore;
  }

 private:
  // The bracket that opens the arguments; or the end of a call without any.
  Progress begin(PendingText& pending, std::string& text) {
    const MarkerMatch end = match_front(pending, context_.format->call_end);
    if (end.is_partial()) return Progress::kMore;
    has_ended_ = end.is_whole();
    if (has_ended_) text = "{}";
    if (has_ended_) return Progress::kDone;
    const char letter = pending.rest().front();
    if (letter != '{' && letter != '(') return Progress::kNoCall;
    pending.take(1);
    arguments_.begin(name(), letter == '{' ? '}' : ')', text);
    return Progress::kDone;
  }

  // Some models put the names of a server and the like before that of a tool.
  std::string_view name() const {
    const std::string_view whole = header_.name();
    const size_t colon = whole.find_last_of(":.");
    if (context_.tools->has(whole) || colon == std::string_view::npos) return whole;
    const std::string_view last = whole.substr(colon + 1);
    return context_.tools->has(last) ? last : whole;
  }

  const CallContext context_;
  CallHeader header_;
  BareArguments arguments_;
  ArgumentsWriter writer_;
  bool has_header_ = false;
  bool has_begun_ = false;
  bool has_ended_ = false;  // without arguments
};

}  // namespace

std::unique_ptr<CallReader> make_bare_call_reader(const CallContext& context) {
  return std::make_unique<BareCallReader>(context);
}

}  // namespace lockstep
