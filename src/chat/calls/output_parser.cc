#include "chat/calls/output_parser.h"

#include <utility>

#include "base/utf8.h"

namespace lockstep {
namespace {

ToolFormat::IdForm id_form(const ToolFormat* format) {
  return format ? format->id_form : ToolFormat::IdForm::kLetters;
}

}  // namespace

OutputParser::OutputParser(Options options)
    : options_(std::move(options)),
      writer_({id_form(options_.format), options_.id_seed, options_.calls_before}) {
  if (options_.format == nullptr) return;
  if (!options_.tools) options_.tools = std::make_shared<const ToolSet>();
  const OutputReaderOptions reader = {options_.format, options_.tools.get(),
                                      options_.reasoning_is_open, options_.continues_text};
  reader_ = options_.format->is_harmony ? make_harmony_reader(reader) : make_marked_reader(reader);
}

std::vector<OutputDelta> OutputParser::push(std::string_view piece) {
  half_character_ += piece;
  const size_t whole = half_character_.size() - incomplete_utf8_tail(half_character_);
  const std::string text = replace_invalid_utf8(std::string_view(half_character_).substr(0, whole));
  half_character_.erase(0, whole);
  read(text);
  return writer_.take();
}

std::vector<OutputDelta> OutputParser::finish(bool is_truncated) {
  is_truncated_ = is_truncated;
  read(replace_invalid_utf8(std::exchange(half_character_, {})));
  pending_.end(is_truncated);
  read_pending();
  return writer_.take();
}

std::string_view OutputParser::finish_reason() const {
  if (is_truncated_) return "length";
  return writer_.call_count() > 0 ? "tool_calls" : "stop";
}

// Long pieces are split, because each search for a marker would otherwise scan all of the text
// again.
void OutputParser::read(std::string_view text) {
  while (!text.empty()) {
    std::string_view bit = text.substr(0, kBitBytesMax);
    bit.remove_suffix(incomplete_utf8_tail(bit));
    pending_.append(bit);
    text.remove_prefix(bit.size());
    read_pending();
  }
}

void OutputParser::read_pending() {
  if (reader_) {
    reader_->read(pending_, writer_);
  } else {
    writer_.content(pending_.rest());
    pending_.take(pending_.rest().size());
  }
  pending_.compact();
}

}  // namespace lockstep
