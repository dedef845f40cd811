// ChoiceWriter: one choice of an answer of OpenAI's text APIs. It is given the text as it is
// generated and makes objects of "choices" of it, for the chunks of a stream and for the whole
// answer. Used by openai_answer.cc; calls come one at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "server/token_logprobs.h"

namespace lockstep {

class ChoiceWriter {
 public:
  using Objects = std::vector<JsonObject>;

  virtual ~ChoiceWriter() = default;
  virtual Objects begin() = 0;  // opens a stream
  // Of the tokens that the next text or the end comes of.
  virtual void logprobs(std::vector<TokenLogprobs>) {}
  virtual Objects text(std::string_view text) = 0;
  virtual void token() {}  // the text of one more has been given
  virtual int64_t reasoning_tokens() const { return 0; }
  virtual Objects end(std::string_view finish_reason) = 0;
  virtual JsonObject silence() const = 0;  // a chunk that says nothing
  virtual JsonObject whole() const = 0;    // after end()
};

}  // namespace lockstep
