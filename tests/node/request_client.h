// A client of a ModelService in tests: records the events of one request, which the test waits for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "node/models/model_service.h"

namespace lockstep {

class RequestClient {
 public:
  EventSink events() {
    return [this](RequestEvent event) {
      const std::lock_guard lock(mutex_);
      if (const auto* started = event.as<RequestEvent::Started>()) {
        cached_tokens_.push_back(started->cached_tokens);
      } else if (const auto* token = event.as<RequestEvent::Token>()) {
        tokens_.push_back(token->token);
      } else if (auto* logprobs = event.as<RequestEvent::Logprobs>()) {
        logprobs_.push_back(std::move(logprobs->logprobs));
      } else if (auto* row = event.as<RequestEvent::Row>()) {
        row_ = std::move(row->values);
      } else if (auto* ended = event.as<RequestEvent::Ended>()) {
        ++ends_;
        outcome_ = std::move(ended->outcome);
      }
      changed_.notify_all();
    };
  }
  // Nullopt: it did not end within the time limit.
  std::optional<Result<FinishReason>> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return outcome_.has_value(); });
    return outcome_;
  }
  bool waits_for_tokens(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return tokens_.size() >= count; });
  }
  bool has_ended_well() {
    const auto outcome = wait();
    return outcome && outcome->ok();
  }
  // The error that it ends with; kInternal "" for any other end.
  Error error() {
    const auto outcome = wait();
    return outcome && !outcome->ok() ? outcome->error() : Error{ErrorCode::kInternal, ""};
  }
  std::vector<int32_t> tokens() {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }
  // All reported numbers of prompt tokens found in the cache.
  std::vector<int> cached_tokens() {
    const std::lock_guard lock(mutex_);
    return cached_tokens_;
  }
  std::vector<std::vector<TokenLogprob>> logprobs() {
    const std::lock_guard lock(mutex_);
    return logprobs_;
  }
  std::vector<float> row() {
    const std::lock_guard lock(mutex_);
    return row_;
  }
  int ends() {
    const std::lock_guard lock(mutex_);
    return ends_;
  }

 private:
  static constexpr std::chrono::seconds kPatience{30};  // for a busy machine

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> cached_tokens_;
  std::vector<int32_t> tokens_;
  std::vector<std::vector<TokenLogprob>> logprobs_;
  std::vector<float> row_;
  std::optional<Result<FinishReason>> outcome_;
  int ends_ = 0;
};

inline GenerateRequest request_for(std::vector<int32_t> prompt, int max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  return request;
}

}  // namespace lockstep
