// ChatWriter: formats the answer to a conversation for one API, as a stream of events and as one
// object. Used by chat_answer.cc; calls come one at a time, in this order: begin, deltas, end or
// error. silence() may come any time before the end, even before begin() while the prompt is
// computed. Each call returns what a streamed answer sends next, perhaps nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chat/calls/output_delta.h"
#include "net/http/http_server.h"
#include "server/generation/generation.h"
#include "server/request/errors.h"

namespace lockstep {

struct ChatEnd {
  std::string_view finish_reason;  // OpenAI's word: "stop", "length" or "tool_calls"
  std::string stop_string;         // that ended the answer; empty: none did
  GenerationUsage usage;
  int64_t reasoning_tokens = 0;  // of usage.completion_tokens
};

class ChatWriter {
 public:
  virtual ~ChatWriter() = default;
  virtual std::string begin(const GenerationUsage& usage) = 0;  // as far as known
  virtual std::string delta(const OutputDelta& delta) = 0;
  virtual std::string silence() = 0;  // empty, keeps the client waiting
  virtual std::string end(const ChatEnd& end) = 0;
  virtual std::string error(const ApiError& error) = 0;           // the stream has begun
  virtual std::string whole() const = 0;                          // a body, after end()
  virtual HttpResponse refusal(const ApiError& error) const = 0;  // instead of all the above
};

}  // namespace lockstep
