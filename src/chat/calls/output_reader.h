// OutputReader: parses one model's output incrementally. Two kinds: markers in a text, and
// harmony's messages. Used by OutputParser; one thread.
#pragma once

#include <memory>

#include "chat/calls/output_delta.h"
#include "chat/text/pending_text.h"
#include "chat/tools/tool_format.h"
#include "chat/tools/tool_set.h"

namespace lockstep {

class OutputReader {
 public:
  virtual ~OutputReader() = default;
  // Consumes the pending text as far as it is unambiguous, or all of it once the text has ended.
  virtual void read(PendingText& pending, DeltaWriter& out) = 0;
  // Whether the reader is inside the reasoning.
  virtual bool is_reasoning() const = 0;
};

struct OutputReaderOptions {
  const ToolFormat* format = nullptr;  // never null
  const ToolSet* tools = nullptr;      // never null; empty: calls are not parsed
  bool reasoning_is_open = false;      // the prompt ends inside the reasoning
  bool continues_text = false;         // the prompt ends inside the answer's text
};

std::unique_ptr<OutputReader> make_marked_reader(const OutputReaderOptions& options);
std::unique_ptr<OutputReader> make_harmony_reader(const OutputReaderOptions& options);

// White space before a marker belongs to the marker if it is still held.
inline constexpr size_t kHeldBlanksMax = 8;

// How many bytes at the front of `pending` can be sent, given that a marker may follow.
size_t sendable_bytes(const PendingText& pending, const ToolFormat::Markers& markers);
// `text` without the white space that belongs to the marker after it.
std::string_view before_marker(std::string_view text);

}  // namespace lockstep
