// Log-probabilities of tokens that have become text, in the form of OpenAI's answers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "json/json.h"
#include "sampling/logprobs.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

struct TextLogprob {
  std::string bytes;  // of the token's text; of a special token its printed form
  float logprob = 0;
};

struct TokenLogprobs {
  TextLogprob token;
  std::vector<TextLogprob> top;   // the likeliest
  int64_t characters_before = 0;  // of the text before this token
};

// `logprobs`: the token's, then the likeliest.
TokenLogprobs token_logprobs(std::span<const TokenLogprob> logprobs, const Tokenizer& tokenizer,
                             int64_t characters_before);

// An entry of "content" of a chat completion's "logprobs".
JsonObject chat_logprobs_json(const TokenLogprobs& logprobs);
// "logprobs" of a completion.
JsonObject completion_logprobs_json(std::span<const TokenLogprobs> logprobs);

// `text` is whole UTF-8 characters.
int64_t count_characters(std::string_view text);

}  // namespace lockstep
