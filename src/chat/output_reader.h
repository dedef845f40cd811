// OutputReader: understands the output of one model, text that comes in pieces, as far as it has
// come. Two kinds: markers in a text, and harmony's messages. Used by OutputParser; one thread.
#pragma once

#include <memory>

#include "chat/output_delta.h"
#include "chat/pending_text.h"
#include "chat/tool_format.h"
#include "chat/tool_set.h"

namespace lockstep {

class OutputReader {
 public:
  virtual ~OutputReader() = default;
  // Takes from the pending text what it understands. Once the text has ended: all of it.
  virtual void read(PendingText& pending, DeltaWriter& out) = 0;
  // Whether what comes next is reasoning, as far as has been read.
  virtual bool is_reasoning() const = 0;
};

struct OutputReaderOptions {
  const ToolFormat* format = nullptr;  // never null
  const ToolSet* tools = nullptr;      // never null; empty: no calls are looked for
  bool reasoning_is_open = false;      // the prompt ends inside the reasoning
  bool continues_text = false;         // the prompt ends inside the answer's text
};

std::unique_ptr<OutputReader> make_marked_reader(const OutputReaderOptions& options);
std::unique_ptr<OutputReader> make_harmony_reader(const OutputReaderOptions& options);

// White space before a marker belongs to the marker as far as it is still held.
inline constexpr size_t kHeldBlanksMax = 8;

// How much of the front of `text` can be sent on, given that the markers may follow it.
size_t sendable_bytes(const PendingText& pending, const ToolFormat::Markers& markers);
// `text` without the white space that belongs to the marker behind it.
std::string_view before_marker(std::string_view text);

}  // namespace lockstep
