#include "server/generation/logprob_queue.h"

#include <utility>

namespace lockstep {

void LogprobQueue::add(std::span<const TokenLogprob> logprobs, const Tokenizer& tokenizer) {
  held_.push_back({token_logprobs(logprobs, tokenizer, characters_), decoded_bytes_});
}

void LogprobQueue::decoded(std::string_view text) {
  decoded_bytes_ += text.size();
  characters_ += count_characters(text);
}

std::vector<TokenLogprobs> LogprobQueue::passed_on(std::string_view text) {
  passed_bytes_ += text.size();
  std::vector<TokenLogprobs> taken;
  while (!held_.empty() && held_.front().begin < passed_bytes_) {
    taken.push_back(std::move(held_.front().logprobs));
    held_.pop_front();
  }
  return taken;
}

std::vector<TokenLogprobs> LogprobQueue::take_rest() {
  std::vector<TokenLogprobs> taken;
  for (Held& held : held_) taken.push_back(std::move(held.logprobs));
  held_.clear();
  return taken;
}

}  // namespace lockstep
