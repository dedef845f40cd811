// Calls with the name before the arguments, which are JSON.
#include "chat/calls/call_reader.h"

namespace lockstep {
namespace {

constexpr std::string_view kFence = "```";

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
      ToolFormat::Markers fences = format_.before_arguments;
      const ToolFormat::Markers& more = format_.mistakes.fences;
      fences.insert(fences.end(), more.begin(), more.end());
      const MarkerMatch fence = match_front(pending, fences);
      if (fence.is_partial()) return Progress::kMore;
      pending.take(fence.bytes);
      has_fence_ = true;
      has_needless_fence_ = fence.is_whole() && fence.index >= format_.before_arguments.size();
    }
    std::string text;
    has_arguments_ = has_arguments_ || arguments_.read(pending, text);
    writer_.write(text, out);
    if (!has_arguments_ || !has_needless_fence_) {
      return has_arguments_ ? Progress::kDone : Progress::kMore;
    }
    if (!pending.skip_blanks() && !pending.has_ended()) return Progress::kMore;
    const MarkerMatch fence = match_front(pending, {kFence});
    pending.take(fence.bytes);
    return fence.is_partial() ? Progress::kMore : Progress::kDone;
  }

 private:
  const ToolFormat& format_;
  CallHeader header_;
  bool has_header_ = false;
  bool has_fence_ = false;
  bool has_needless_fence_ = false;  // which the format does not have
  bool has_arguments_ = false;
  ArgumentsReader arguments_;
  ArgumentsWriter writer_;
};

}  // namespace

std::unique_ptr<CallReader> make_headed_call_reader(const CallContext& context) {
  return std::make_unique<HeadedCallReader>(context);
}

}  // namespace lockstep
