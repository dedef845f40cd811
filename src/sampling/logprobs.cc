#include "sampling/logprobs.h"

#include <algorithm>

#include "kernels/math.h"
#include "sampling/choose.h"

namespace lockstep {

void append_logprobs(std::span<const float> logits, int32_t token, int32_t top,
                     std::vector<TokenLogprob>& logprobs) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) total += exp_f32(logit - most);
  const double log_total = log_f64(total);
  const auto logprob = [&](int32_t of) {
    const double difference = double{logits[static_cast<size_t>(of)]} - double{most};
    return static_cast<float>(difference - log_total);
  };
  logprobs.push_back({token, logprob(token)});
  if (top <= 0) return;
  std::vector<Candidate> best;
  best.reserve(static_cast<size_t>(top) + 1);
  list_best(logits, 0, {.temperature = 1}, static_cast<size_t>(top), best);
  for (const Candidate& one : best) logprobs.push_back({one.token, logprob(one.token)});
}

}  // namespace lockstep
