// ChatWriter: how one API tells the answer to a conversation, as a stream of events and as one
// object. Used by chat_answer.cc; calls come one at a time, in this order: begin, deltas, end or
// error; silences at any time before the end, the first of them perhaps while the prompt is read
// and nothing has begun. Each gives what is to be sent if the answer is streamed, perhaps nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chat/output_delta.h"
#include "net/http_server.h"
#include "server/errors.h"
#include "server/generation.h"

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
  virtual std::string begin(const GenerationUsage& usage) = 0;  // what is known of it
  virtual std::string delta(const OutputDelta& delta) = 0;
  virtual std::string silence() = 0;  // says nothing, but keeps the client waiting
  virtual std::string end(const ChatEnd& end) = 0;
  virtual std::string error(const ApiError& error) = 0;           // the stream has begun
  virtual std::string whole() const = 0;                          // a body, after end()
  virtual HttpResponse refusal(const ApiError& error) const = 0;  // instead of all of these
};

}  // namespace lockstep
