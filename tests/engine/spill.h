// Helpers of the tests of state on disk.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/rank_threads.h"
#include "support/story_requests.h"
#include "transport/unformed_link.h"

namespace lockstep {

// Sampled tokens with the bits of their log-probabilities: everything that the logits affect.
inline GenerateRequest logged_generation_of(std::vector<int32_t> prompt, int max_tokens) {
  GenerateRequest request = generation_of(std::move(prompt), max_tokens);
  request.top_logprobs = 5;
  return request;
}

inline bool has_same_bits(const Answer& a, const Answer& b) {
  if (!same_bits(a, b) || !a.error.empty() || a.logprobs.size() != b.logprobs.size()) return false;
  for (size_t i = 0; i < a.logprobs.size(); ++i) {
    const size_t bytes = a.logprobs[i].size() * sizeof(TokenLogprob);
    if (a.logprobs[i].size() != b.logprobs[i].size()) return false;
    if (std::memcmp(a.logprobs[i].data(), b.logprobs[i].data(), bytes) != 0) return false;
  }
  return true;
}

inline std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name.size() > 64) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Signals events to another thread.
class Waiting final : public EventReader {
 public:
  void on_start(uint64_t, int cached_tokens) override { answer_.cached_tokens = cached_tokens; }
  void on_token(uint64_t, int32_t token) override { answer_.tokens.push_back(token); }
  void on_logprobs(uint64_t, const std::vector<TokenLogprob>& logprobs) override {
    answer_.logprobs.push_back(logprobs);
  }
  void on_end(uint64_t, FinishReason) override { end(); }
  void on_error(uint64_t, const Error& error) override {
    answer_.error = error.message;
    end();
  }

  Answer wait() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(30), [this] { return has_ended_; }));
    has_ended_ = false;
    return std::exchange(answer_, {});
  }

 private:
  void end() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;
  Answer answer_;
};

// An engine of one rank that keeps its state in a folder, and whose epochs follow each other.
class EngineOfEpochs {
 public:
  EngineOfEpochs(const std::string& model, const std::filesystem::path& folder)
      : engine_(
            load_engine(engine_options_of(model, {.cache_folders = {folder.string()}}), group())) {
    REQUIRE_MESSAGE(engine_.ok(), engine_.error().message);
  }

  // `use` submits requests and waits for their answers; then the epoch ends.
  template <class Use>
  void run_epoch(Use use) {
    Engine& engine = *engine_.value();
    REQUIRE(engine.rejoin(group()).ok());
    Waiting events;
    Status ended = Ok{};
    std::thread thread([&] { ended = engine.run(events); });
    use(engine, events);
    engine.leave();
    thread.join();
    CHECK(!ended.ok());
  }

 private:
  Group group() const {
    return Group({.rank = 0,
                  .links = unformed_links(0, 1),
                  .cancelled = &cancelled_,
                  .kernels = kernels_named("")});
  }

  std::atomic<bool> cancelled_{false};
  Result<std::unique_ptr<Engine>> engine_;
};

}  // namespace lockstep
