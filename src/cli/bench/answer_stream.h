// AnswerStream: reads a streamed answer of an OpenAI-compatible server (completions or chat) for a
// load test: when text arrives, how many tokens the server counted, and how it ends. Bytes are
// untrusted. One thread. Used by `lockstep bench serve`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/json.h"

namespace lockstep {

class AnswerStream {
 public:
  static constexpr size_t kLineBytesMax = 4 << 20;

  // The number of events in this piece with a part of the answer: text, reasoning or a call.
  // kCorrupt if it is not such a stream; earlier events still count.
  Result<int> take(std::string_view piece);

  bool is_done() const { return is_done_; }  // "[DONE]" has arrived
  // The server's report of an error after the stream had begun.
  const std::optional<std::string>& error() const { return error_; }
  // The server's count; -1 if not reported.
  int64_t prompt_tokens() const { return prompt_tokens_; }
  int64_t new_tokens() const { return new_tokens_; }

 private:
  Result<bool> take_line(std::string_view line);  // true: a part of the answer
  void take_usage(const Json& event);

  std::string unfinished_;  // of a line
  bool is_done_ = false;
  std::optional<std::string> error_;
  int64_t prompt_tokens_ = -1;
  int64_t new_tokens_ = -1;
};

}  // namespace lockstep
