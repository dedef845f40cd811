// What is made of a model's output: a message that grows by deltas, as clients of OpenAI's API see
// it. DeltaWriter is where the readers of output put what they have understood; MessageBuilder puts
// the deltas together again. One thread each.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chat/tool_format.h"
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
  std::string arguments;  // JSON text, unless the model broke it or was cut off
};

struct OutputMessage {
  std::string content;
  std::string reasoning;
  std::vector<OutputCall> calls;
};

// Deltas, one behind the other, to the message.
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

// How ids of calls are made.
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
  // Without an id of the model's own, or with one that this message has already, one is made.
  void call(std::string_view name, std::string_view id);
  void arguments(std::string_view text) { append(OutputDelta::Kind::kArguments, text); }
  // What follows is another delta, also where it could be part of the last.
  void end_delta() { has_delta_ended_ = true; }

  size_t call_count() const { return call_count_; }
  bool has_content() const { return has_content_; }
  // What has come since the last time.
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
