// Log-probabilities of tokens as an answer reports them: of the model's own distribution, the
// softmax of the logits at temperature 1, before biases, penalties and filters. Computed from the
// whole row in token order, so that every cut gives the same bits. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

inline constexpr int32_t kTopLogprobsMax = 20;  // as OpenAI's

struct TokenLogprob {
  int32_t token = -1;
  float logprob = 0;
};

// Appends `token`, then the `top` likeliest, likeliest first, the smaller token first if equal. All
// logits must be numbers.
void append_logprobs(std::span<const float> logits, int32_t token, int32_t top,
                     std::vector<TokenLogprob>& logprobs);

}  // namespace lockstep
