// Calls with the name before the arguments, which are JSON.
#include "chat/calls/call_reader.h"

namespace lockstep {
namespace {

// The markers that end malformed arguments.
ToolFormat::Markers stops_of(const ToolFormat& format) {
  ToolFormat::Markers stops = format.call_end;
  stops.insert(stops.end(), format.section_end.begin(), format.section_end.end());
  stops.insert(stops.end(), format.call_begin.begin(), format.call_begin.end());
  return stops;
}

class HeadedCallReader final : public CallReader {
 public:
  explicit HeadedCallReader(const CallContext& context)
      : format_(*context.format), header_(context), arguments_(stops_of(*context.format)) {}

  Progress read(PendingText& pending, DeltaWriter& out) override {
    if (!has_header_) {
      const Progress progress = header_.read(pending);
      if (progress != Progress::kDone) return progress;
      has_header_ = true;
      pending.unmark();
      out.call(header_.name(), header_.id());
    }
    if (!has_fence_) {
      if (!pending.skip_blanks() && !pending.has_ended()) return Progress::kMore;
      const MarkerMatch fence = match_front(pending, format_.before_arguments);
      if (fence.is_partial()) return Progress::kMore;
      pending.take(fence.bytes);
      has_fence_ = true;
    }
    std::string text;
    const bool is_last = arguments_.read(pending, text);
    writer_.write(text, out);
    return is_last ? Progress::kDone : Progress::kMore;
  }

 private:
  const ToolFormat& format_;
  CallHeader header_;
  bool has_header_ = false;
  bool has_fence_ = false;
  ArgumentsReader arguments_;
  ArgumentsWriter writer_;
};

}  // namespace

std::unique_ptr<CallReader> make_headed_call_reader(const CallContext& context) {
  return std::make_unique<HeadedCallReader>(context);
}

}  // namespace lockstep
