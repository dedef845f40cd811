// A model folder for the test worker, and a client that waits for what a GroupSupervisor reports.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "node/group/group_supervisor.h"
#include "node/test_tokens.h"
#include "support/temporary_folder.h"

namespace lockstep {

// Generous: a test fails by its assertions, not by a busy machine.
inline constexpr std::chrono::seconds kTestWait{120};

class TemporaryModel {
 public:
  explicit TemporaryModel(const std::string& name = "echo") {
    path_ = parent_.path() / name;
    parent_.write(name + "/config.json", R"({"eos_token_id": 2})");
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder parent_;
  std::filesystem::path path_;
};

inline GroupSupervisorOptions echo_options(const TemporaryModel& model, int ranks,
                                           const std::string& link = "shm") {
  GroupSupervisorOptions options;
  options.spec.model = model.path();
  options.spec.shares = equal_shares(ranks);
  options.spec.link.kind = parse_link_kind(link).value();
  options.spec.threads = 1;
  options.losses_max = 0;  // a test sees every loss at once
  options.worker_program = std::string(LOCKSTEP_BINARY_DIR) + "/node_test_worker";
  return options;
}

inline std::unique_ptr<GroupSupervisor> start_echo(const GroupSupervisorOptions& options) {
  auto group = GroupSupervisor::start(options);
  REQUIRE_MESSAGE(group.ok(), (group.ok() ? "" : group.error().message));
  return std::move(group.value());
}

inline GenerateRequest prompt(std::vector<int32_t> tokens, int max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(tokens);
  request.max_tokens = max_tokens;
  return request;
}

// One request and its events. Must outlive its request.
class Client {
 public:
  EventSink events() {
    return [this](RequestEvent event) {
      std::lock_guard lock(mutex_);
      if (const auto* started = event.as<RequestEvent::Started>()) {
        cached_tokens_.push_back(started->cached_tokens);
      } else if (const auto* token = event.as<RequestEvent::Token>()) {
        tokens_.push_back(token->token);
      } else if (auto* row = event.as<RequestEvent::Row>()) {
        rows_.push_back(std::move(row->values));
      } else if (const auto* paused = event.as<RequestEvent::Paused>()) {
        pauses_.push_back(paused->reason);
      } else if (const auto* resumed = event.as<RequestEvent::Resumed>()) {
        recomputed_.push_back(resumed->recomputed_tokens);
      } else if (auto* ended = event.as<RequestEvent::Ended>()) {
        ++ends_;
        outcome_ = std::move(ended->outcome);
        ended_at_ = std::chrono::steady_clock::now();
      }
      changed_.notify_all();
    };
  }

  uint64_t start(GroupSupervisor& group, GenerateRequest request) {
    auto id = group.generate(std::move(request), events());
    REQUIRE_MESSAGE(id.ok(), (id.ok() ? "" : id.error().message));
    return id.value();
  }

  void wait_tokens(size_t count) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, kTestWait, [&] { return tokens_.size() >= count; }));
  }

  Result<FinishReason> wait_end() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, kTestWait, [&] { return outcome_.has_value(); }));
    CHECK(ends_ == 1);
    return *outcome_;
  }

  std::vector<int32_t> tokens() const {
    std::lock_guard lock(mutex_);
    return tokens_;
  }
  // All reported numbers of prompt tokens found in the cache.
  std::vector<int> cached_tokens() const {
    std::lock_guard lock(mutex_);
    return cached_tokens_;
  }
  // Why it stood still, each time.
  std::vector<std::string> pauses() const {
    std::lock_guard lock(mutex_);
    return pauses_;
  }
  // Tokens computed a second time, each time that it went on.
  std::vector<int> recomputed() const {
    std::lock_guard lock(mutex_);
    return recomputed_;
  }
  std::vector<std::vector<float>> rows() const {
    std::lock_guard lock(mutex_);
    return rows_;
  }
  std::chrono::steady_clock::time_point ended_at() const {
    std::lock_guard lock(mutex_);
    return ended_at_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> cached_tokens_;
  std::vector<int32_t> tokens_;
  std::vector<std::vector<float>> rows_;
  std::vector<std::string> pauses_;
  std::vector<int> recomputed_;
  std::optional<Result<FinishReason>> outcome_;
  std::chrono::steady_clock::time_point ended_at_;
  int ends_ = 0;
};

// An echo of token 100 gives 101, 102, 103.
inline void check_serves(GroupSupervisor& group) {
  Client client;
  client.start(group, prompt({100}, 3));
  const auto outcome = client.wait_end();
  REQUIRE_MESSAGE(outcome.ok(), (outcome.ok() ? "" : outcome.error().message));
  CHECK(client.tokens() == std::vector<int32_t>{101, 102, 103});
}

}  // namespace lockstep
