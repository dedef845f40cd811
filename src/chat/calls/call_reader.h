// CallReader: reads one tool call in a model's output, from after its opening marker to the end of
// its arguments. One class per ToolFormat::Body, and one for calls in Python. Used by MarkedReader
// and HarmonyReader; one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "chat/calls/json_scanner.h"
#include "chat/calls/output_delta.h"
#include "chat/text/pending_text.h"
#include "chat/tools/tool_format.h"
#include "chat/tools/tool_set.h"

namespace lockstep {

// Text held while it may not be a call, or while a value's type is unknown until its end.
inline constexpr size_t kHeldBytesMax = size_t{1} << 20;
// Limit of the name of a call or parameter.
inline constexpr size_t kNameBytesMax = 256;

class CallReader {
 public:
  enum class Progress {
    kMore,    // needs more text; never once the text has ended
    kDone,    // the call is in the deltas, the text after it is pending
    kNoCall,  // not a call; nothing is in the deltas
  };
  virtual ~CallReader() = default;
  virtual Progress read(PendingText& pending, DeltaWriter& out) = 0;
};

struct CallContext {
  const ToolFormat* format = nullptr;  // never null
  const ToolSet* tools = nullptr;      // never null
  bool needs_known_name = false;       // only a known name makes this a call
};

std::unique_ptr<CallReader> make_call_reader(const CallContext& context);
std::unique_ptr<CallReader> make_json_call_reader(const CallContext& context);
std::unique_ptr<CallReader> make_headed_call_reader(const CallContext& context);
std::unique_ptr<CallReader> make_tagged_call_reader(const CallContext& context);
std::unique_ptr<CallReader> make_bare_call_reader(const CallContext& context);
// name.call(key="value"), to the end of the text.
std::unique_ptr<CallReader> make_python_call_reader(const CallContext& context);

// Text escaped as in a JSON string, without the quotes.
std::string json_escaped(std::string_view text);

// Whether `name` can be the name of a called function.
bool is_call_name(const CallContext& context, std::string_view name);

// Reads NAME of a call and the marker that ends it.
class CallHeader {
 public:
  explicit CallHeader(const CallContext& context);

  CallReader::Progress read(PendingText& pending);
  const std::string& name() const { return name_; }
  const std::string& id() const { return id_; }  // empty: the model gave none

 private:
  CallReader::Progress finish(std::string_view text);
  bool skip_prefix(PendingText& pending);

  const CallContext context_;
  ToolFormat::Markers ends_;
  std::string stops_;
  bool has_begun_ = false;
  bool is_in_id_ = false;
  std::string name_;
  std::string id_;
};

// Reads arguments as one JSON value. Two substitutes for an object are corrected: its text as a
// string, and null. A malformed value is passed on unchanged up to one of `stops`.
class ArgumentsReader {
 public:
  explicit ArgumentsReader(ToolFormat::Markers stops) : stops_(std::move(stops)) {}

  // True once all has been read. Appends the known text to `text`.
  bool read(PendingText& pending, std::string& text);

 private:
  bool read_object(PendingText& pending, std::string& text);
  bool read_other(PendingText& pending, std::string& text);
  bool read_broken(PendingText& pending, std::string& text);

  const ToolFormat::Markers stops_;
  JsonScanner scanner_;
  enum class Kind { kUnknown, kObject, kOther, kBroken } kind_ = Kind::kUnknown;
  std::string held_;
};

// Writes arguments. Long ones that arrive at once are still split into two deltas, which clients
// expect.
class ArgumentsWriter {
 public:
  void write(std::string_view text, DeltaWriter& out);

 private:
  static constexpr size_t kAtOnceMax = 20;
  bool has_written_ = false;
};

}  // namespace lockstep
