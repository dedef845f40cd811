// A ModelService without a model: each token is a function of all tokens before it, so that a
// resumed text can be compared with an uninterrupted one. It has its own thread, like a
// GroupSupervisor; the test says how many tokens it may give, and when it fails.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "node/models/model_service.h"

namespace lockstep {

inline int32_t next_token(std::span<const int32_t> tokens) {
  uint64_t hash = 1469598103934665603u;
  for (int32_t token : tokens) hash = (hash ^ static_cast<uint32_t>(token)) * 1099511628211u;
  return static_cast<int32_t>((hash >> 20) % 100'000);
}

// The `count` tokens that follow the prompt.
inline std::vector<int32_t> text_after(std::vector<int32_t> prompt, int count) {
  std::vector<int32_t> text;
  for (int i = 0; i < count; ++i) {
    text.push_back(next_token(prompt));
    prompt.push_back(text.back());
  }
  return text;
}

class FakeService final : public ModelService {
 public:
  struct Options {
    int64_t tokens = INT64_MAX;       // that it may produce for now
    int64_t fails_after = INT64_MAX;  // tokens
    int requests_max = 1'000;
    int context = 1 << 23;
  };

  FakeService() : FakeService(Options{}) {}
  explicit FakeService(Options options) : options_(options) {
    status_.state = ModelStatus::State::kReady;
    status_.name = "fake";
    status_.link = "tcp";
    status_.context = options.context;
    status_.vocab_size = 100'000;
    status_.ranks = {{.rank = 0, .pid = 7, .weight_bytes = 1'000}};
    thread_ = std::thread([this] { work(); });
  }
  FakeService(const FakeService&) = delete;
  ~FakeService() override { stop(); }

  // Ends everything with kCancelled, like an owner whose placement has ended.
  void stop() {
    end_all(ModelStatus::State::kStopped);
    if (thread_.joinable()) thread_.join();
  }
  void fail() { end_all(ModelStatus::State::kFailed); }
  void allow(int64_t tokens) {
    const std::lock_guard lock(mutex_);
    options_.tokens += tokens;
    changed_.notify_all();
  }

  std::shared_ptr<const Tokenizer> tokenizer() const override { return nullptr; }
  std::vector<int32_t> stop_ids() const override { return {}; }
  ModelChatFormat chat_format() const override { return std::shared_ptr<const ChatFormat>(); }
  SamplingDefaults sampling_defaults() const override { return {}; }
  ModelStatus status() const override {
    const std::lock_guard lock(mutex_);
    return status_;
  }

  Result<uint64_t> generate(GenerateRequest request, EventSink events) override {
    const std::lock_guard lock(mutex_);
    if (status_.state != ModelStatus::State::kReady) {
      return Error{ErrorCode::kPeerLost, "the fake is gone"};
    }
    if (request.prompt.size() > static_cast<size_t>(options_.context) ||
        status_.running >= options_.requests_max) {
      return Error{ErrorCode::kExhausted, "the fake is full"};
    }
    ++status_.running;
    requests_.emplace(++last_id_, Running{std::move(request), std::move(events)});
    changed_.notify_all();
    return last_id_;
  }
  void cancel(uint64_t id) override {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(id);
    if (found != requests_.end()) found->second.is_cancelled = true;
    changed_.notify_all();
  }

 private:
  struct Running {
    GenerateRequest request;
    EventSink events;
    bool is_cancelled = false;
    bool is_started = false;
  };

  bool is_ready() const { return status_.state == ModelStatus::State::kReady; }
  bool has_work() const {
    if (!is_ready()) return true;
    for (const auto& [id, each] : requests_) {
      if (each.is_cancelled || options_.tokens > 0) return true;
    }
    return false;
  }

  void end_all(ModelStatus::State state) {
    const std::lock_guard lock(mutex_);
    if (!is_ready()) return;
    status_.state = state;
    status_.last_error = "rank 0 was killed";
    changed_.notify_all();
  }

  void work() {
    std::unique_lock lock(mutex_);
    uint64_t last = 0;  // requests take turns, one token each
    while (is_ready()) {
      changed_.wait(lock, [&] { return has_work(); });
      if (!is_ready()) break;
      auto next = requests_.upper_bound(last);
      if (next == requests_.end()) next = requests_.begin();
      last = next->first;
      lock.unlock();
      const bool has_ended = step(last, next->second);
      lock.lock();
      if (!has_ended) continue;
      requests_.erase(next);
      --status_.running;
    }
    const bool is_stopped = status_.state == ModelStatus::State::kStopped;
    const Error error{is_stopped ? ErrorCode::kCancelled : ErrorCode::kPeerLost, "the fake ends"};
    auto ended = std::exchange(requests_, {});
    status_.running = 0;
    lock.unlock();
    for (auto& [id, each] : ended) each.events({id, RequestEvent::Ended{error}});
  }

  // Called without the mutex: elements of a map do not move.
  bool step(uint64_t id, Running& running) {
    GenerateRequest& request = running.request;
    bool is_cancelled = false;
    {
      const std::lock_guard lock(mutex_);
      is_cancelled = running.is_cancelled;
      if (!is_cancelled) {
        if (options_.tokens <= 0) return false;
        --options_.tokens;
        if (options_.fails_after-- == 0) {
          status_.state = ModelStatus::State::kFailed;
          return false;
        }
      }
    }
    if (is_cancelled) {
      const Error cancelled{ErrorCode::kCancelled, "the request was cancelled"};
      running.events({id, RequestEvent::Ended{cancelled}});
      return true;
    }
    if (request.pooling != Pooling::kNone) {
      running.events({id, RequestEvent::Row{{1.5f, -2.0f}}});
      running.events({id, RequestEvent::Ended{FinishReason::kLength}});
      return true;
    }
    if (!std::exchange(running.is_started, true)) {
      running.events({id, RequestEvent::Started{static_cast<int>(request.prompt.size()) - 1}});
    }
    request.prompt.push_back(next_token(request.prompt));
    if (request.top_logprobs >= 0) {
      std::vector<TokenLogprob> logprobs{{request.prompt.back(), -0.5f}};
      for (int i = 0; i < request.top_logprobs; ++i) logprobs.push_back({i, -0.25f});
      running.events({id, RequestEvent::Logprobs{std::move(logprobs)}});
    }
    running.events({id, RequestEvent::Token{request.prompt.back()}});
    if (--request.max_tokens > 0) return false;
    running.events({id, RequestEvent::Ended{FinishReason::kLength}});
    return true;
  }

  Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  ModelStatus status_;
  std::map<uint64_t, Running> requests_;  // erased only by the thread
  uint64_t last_id_ = 0;
  std::thread thread_;
};

}  // namespace lockstep
