// One generation from start to end, for commands that wait for it.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "base/result.h"
#include "node/models/model_service.h"

namespace lockstep {

struct Generated {
  using Clock = std::chrono::steady_clock;

  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits;
  std::vector<std::vector<float>> draft_logits;
  FinishReason reason = FinishReason::kStop;
  Clock::time_point started;
  Clock::time_point first_token;  // valid if there are tokens
  Clock::time_point last_token;
};

double seconds_between(Generated::Clock::time_point from, Generated::Clock::time_point to);

// `on_token` is called on the service's thread. Ctrl-C cancels the running generation (kCancelled).
Result<Generated> generate_and_wait(ModelService& service, GenerateRequest request,
                                    std::function<void(int32_t)> on_token = nullptr);

// Several at once, each as in generate_and_wait(). Returns the first error when all have ended.
Result<std::vector<Generated>> generate_together(ModelService& service,
                                                 std::vector<GenerateRequest> requests);

}  // namespace lockstep
