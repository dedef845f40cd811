// A model's parsed output: a message that grows by deltas, as in OpenAI's API. Output readers write
// to a DeltaWriter; MessageBuilder joins the deltas to a message. One thread each.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chat/tools/tool_format.h"
#include "json/json.h"

namespace lockstep {

struct OutputDelta {
  enum class Kind { kContent, kReasoning, kCall, kArguments };
  Kind kind;
  std::string text;  // of all but kCall
  size_t index = 0;  // of the call
  std::string id;    // of kCall
  std::string name;  // of kCall
};

struct OutputCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text, unless malformed or truncated
};

struct OutputMessage {
  std::string content;
  std::string reasoning;
  std::vector<OutputCall> calls;
};

// Joins consecutive deltas to a message.
class MessageBuilder {
 public:
  void add(const OutputDelta& delta);
  const OutputMessage& message() const { return message_; }

 private:
  OutputMessage message_;
};

// The "delta" object of a chunk.
JsonObject delta_json(const OutputDelta& delta);
JsonArray calls_json(const std::vector<OutputCall>& calls);

// How call ids are generated.
struct CallIds {
  ToolFormat::IdForm form = ToolFormat::IdForm::kLetters;
  uint64_t seed = 0;        // of this answer; the same seed gives the same ids
  size_t calls_before = 0;  // in the conversation
};
std::string make_call_id(const CallIds& ids, std::string_view name, size_t index);

class DeltaWriter {
 public:
  explicit DeltaWriter(CallIds ids) : ids_(ids) {}

  void content(std::string_view text) { append(OutputDelta::Kind::kContent, text); }
  void reasoning(std::string_view text) { append(OutputDelta::Kind::kReasoning, text); }
  // Generates an id if the model gave none, or one that this message already has.
  void call(std::string_view name, std::string_view id);
  void arguments(std::string_view text) { append(OutputDelta::Kind::kArguments, text); }
  // Starts a new delta, even for text that could extend the last one.
  void end_delta() { has_delta_ended_ = true; }

  size_t call_count() const { return call_count_; }
  bool has_content() const { return has_content_; }
  // The deltas since the last call.
  std::vector<OutputDelta> take();

 private:
  void append(OutputDelta::Kind kind, std::string_view text);

  CallIds ids_;
  std::set<std::string, std::less<>> used_ids_;
  size_t call_count_ = 0;
  bool has_content_ = false;
  bool has_delta_ended_ = false;
  std::vector<OutputDelta> deltas_;
};

}  // namespace lockstep
