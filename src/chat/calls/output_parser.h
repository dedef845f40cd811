// OutputParser: turns a model's output, piece by piece, into the deltas of a message: content,
// reasoning and tool calls. It never takes back what was sent; text that is not a call, or a
// malformed call whose name has not been sent, is content. Used by the server and by `lockstep
// toolparse`; one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/output_delta.h"
#include "chat/calls/output_reader.h"
#include "chat/tools/tool_format.h"
#include "chat/tools/tool_set.h"

namespace lockstep {

class OutputParser {
 public:
  struct Options {
    const ToolFormat* format = nullptr;    // one of tool_formats(); null: all output is content
    std::shared_ptr<const ToolSet> tools;  // null or empty: calls are not parsed
    bool reasoning_is_open = false;        // the prompt ends inside the reasoning
    bool continues_text = false;           // the prompt ends inside the answer's text
    uint64_t id_seed = 0;                  // for call ids that the model does not write
    size_t calls_before = 0;               // in the conversation
  };

  explicit OutputParser(Options options);

  // Pieces may end anywhere, even inside a character.
  std::vector<OutputDelta> push(std::string_view piece);
  // `is_truncated`: the model was cut off before it was done.
  std::vector<OutputDelta> finish(bool is_truncated);

  // OpenAI's finish_reason; valid after finish().
  std::string_view finish_reason() const;
  size_t call_count() const { return writer_.call_count(); }
  // Whether the model is reasoning at this point of its output.
  bool is_reasoning() const { return reader_ && reader_->is_reasoning(); }

 private:
  static constexpr size_t kBitBytesMax = 4096;

  void read(std::string_view text);
  void read_pending();

  Options options_;
  DeltaWriter writer_;
  std::unique_ptr<OutputReader> reader_;  // null without a format
  PendingText pending_;
  std::string half_character_;
  bool is_truncated_ = false;
};

}  // namespace lockstep
