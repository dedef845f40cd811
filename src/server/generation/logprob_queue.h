// LogprobQueue: holds the log-probabilities of a choice's tokens until their text is passed on, so
// that tokens removed by a stop string lose theirs too. Part of Generation; under its lock.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "server/generation/token_logprobs.h"

namespace lockstep {

class LogprobQueue {
 public:
  // Called before the text of a token is decoded.
  void add(std::span<const TokenLogprob> logprobs, const Tokenizer& tokenizer);
  void decoded(std::string_view text);
  // Takes those whose text begins within the text passed on so far, `text` included.
  std::vector<TokenLogprobs> passed_on(std::string_view text);
  std::vector<TokenLogprobs> take_rest();

 private:
  struct Held {
    TokenLogprobs logprobs;
    size_t begin;  // of its text, in decoded bytes
  };

  std::deque<Held> held_;
  size_t decoded_bytes_ = 0;
  size_t passed_bytes_ = 0;
  int64_t characters_ = 0;
};

}  // namespace lockstep
