// ChoiceWriter: one choice of an answer of OpenAI's text APIs. Turns the text, as it is generated,
// into objects of "choices" for the chunks of a stream and for the whole answer. Used by
// openai_answer.cc; calls come one at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "server/generation/token_logprobs.h"

namespace lockstep {

class ChoiceWriter {
 public:
  using Objects = std::vector<JsonObject>;

  virtual ~ChoiceWriter() = default;
  virtual Objects begin() = 0;  // opens a stream
  // Logprobs of the tokens that make up the next text or the end.
  virtual void logprobs(std::vector<TokenLogprobs>) {}
  virtual Objects text(std::string_view text) = 0;
  virtual void token() {}  // the text of one more token has been passed
  virtual int64_t reasoning_tokens() const { return 0; }
  virtual Objects end(std::string_view finish_reason) = 0;
  virtual JsonObject silence() const = 0;  // an empty chunk
  virtual JsonObject whole() const = 0;    // after end()
  // The answer is streamed: whole() is never called, and what has been sent need not be kept.
  virtual void drop_sent() {}
};

}  // namespace lockstep
