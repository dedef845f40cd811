// CallReader: reads one tool call of a model's output, from behind what announced it to the end of
// its arguments. One class for each ToolFormat::Body, and one for calls in Python. Used by
// MarkedReader and HarmonyReader; one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "chat/json_scanner.h"
#include "chat/output_delta.h"
#include "chat/pending_text.h"
#include "chat/tool_format.h"
#include "chat/tool_set.h"

namespace lockstep {

// Of text that may still turn out to be no call, or a value whose type is not known before its end.
inline constexpr size_t kHeldBytesMax = size_t{1} << 20;
// Of a call's name or of a parameter's.
inline constexpr size_t kNameBytesMax = 256;

class CallReader {
 public:
  enum class Progress {
    kMore,    // needs more text; never once the text has ended
    kDone,    // the call is in the deltas, the text behind it is pending
    kNoCall,  // nothing of it is in the deltas
  };
  virtual ~CallReader() = default;
  virtual Progress read(PendingText& pending, DeltaWriter& out) = 0;
};

struct CallContext {
  const ToolFormat* format = nullptr;  // never null
  const ToolSet* tools = nullptr;      // never null
  bool needs_known_name = false;       // nothing but the name says that this is a call
};

std::unique_ptr<CallReader> make_call_reader(const CallContext& context);
std::unique_ptr<CallReader> make_json_call_reader(const CallContext& context);
std::unique_ptr<CallReader> make_headed_call_reader(const CallContext& context);
std::unique_ptr<CallReader> make_tagged_call_reader(const CallContext& context);
// name.call(key="value"), the whole rest of the text.
std::unique_ptr<CallReader> make_python_call_reader(const CallContext& context);

// Whether a text can be the name of a function that a model calls.
bool is_call_name(const CallContext& context, std::string_view name);

// NAME of a call and what ends it.
class CallHeader {
 public:
  explicit CallHeader(const CallContext& context);

  CallReader::Progress read(PendingText& pending);
  const std::string& name() const { return name_; }
  const std::string& id() const { return id_; }  // empty: the model gave none

 private:
  CallReader::Progress finish(std::string_view text);

  const CallContext context_;
  ToolFormat::Markers ends_;
  bool has_begun_ = false;
  bool is_in_id_ = false;
  std::string name_;
  std::string id_;
};

// Arguments as one JSON value. What models write instead of an object is put right where that is
// clear: the object's text as a string, or null. A value that is broken goes on, as it is, up to
// one of `stops`.
class ArgumentsReader {
 public:
  explicit ArgumentsReader(ToolFormat::Markers stops) : stops_(std::move(stops)) {}

  // True once all has been read. The text that is known goes to `text`.
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

// Sends arguments on. Long ones that come at once are still two deltas, as clients are used to.
class ArgumentsWriter {
 public:
  void write(std::string_view text, DeltaWriter& out);

 private:
  static constexpr size_t kAtOnceMax = 20;
  bool has_written_ = false;
};

}  // namespace lockstep
