// LogprobQueue: holds the log-probabilities of a choice's tokens until their text is passed on, so
// that what a stop string takes away takes its tokens along. Part of Generation; under its lock.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "server/token_logprobs.h"

namespace lockstep {

class LogprobQueue {
 public:
  // Before the text of a token is decoded.
  void add(std::span<const TokenLogprob> logprobs, const Tokenizer& tokenizer);
  void decoded(std::string_view text);
  // Takes those whose text begins in front of what has been passed on, `text` included.
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
