// RequestMetrics: counts and times of requests, by model, for GET /metrics
// (server/operations/node_metrics.h). Any thread. RequestMeter counts one request and is used under
// that request's lock.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

// Observations counted by upper bound, as in Prometheus; the last count has no bound.
struct SecondsHistogram {
  static constexpr std::array<double, 16> kBounds{
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};
  std::array<uint64_t, kBounds.size() + 1> counts{};
  double sum = 0;

  void add(double seconds);
};

enum class RequestOutcome : uint8_t { kEnded, kFailed, kCancelled };

struct ModelRequests {
  std::array<uint64_t, 3> outcomes{};   // by RequestOutcome
  uint64_t prompt_tokens = 0;           // of accepted requests
  uint64_t cached_tokens = 0;           // of these, not computed again
  uint64_t computed_prompt_tokens = 0;  // the rest of them, of prompts that are computed
  uint64_t generated_tokens = 0;
  // Answers in progress: the prompt is queued or being computed, or tokens are being generated.
  int64_t waiting = 0;
  int64_t decoding = 0;
  SecondsHistogram first_token;  // from the arrival of a request
  SecondsHistogram next_token;   // between two tokens of a choice
  SecondsHistogram request;      // from its arrival to its end
};

class RequestMetrics {
 public:
  static constexpr size_t kModelsMax = 64;  // further ones are counted as kOthers
  static constexpr std::string_view kOthers = "(others)";

  using Change = void (*)(ModelRequests& model, double value);
  void change(const std::string& model, Change change, double value);
  std::map<std::string, ModelRequests> models() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, ModelRequests> models_;
};

class RequestMeter {
 public:
  using Clock = std::chrono::steady_clock;

  // Null metrics: nothing is counted.
  RequestMeter(std::shared_ptr<RequestMetrics> metrics, std::string model, size_t choices,
               Clock::time_point now)
      : metrics_(std::move(metrics)),
        model_(std::move(model)),
        began_(now),
        last_tokens_(choices),
        phases_(choices) {}
  // A request without an end() by then was cancelled.
  ~RequestMeter() { end(RequestOutcome::kCancelled, Clock::now()); }
  RequestMeter(const RequestMeter&) = delete;
  RequestMeter& operator=(const RequestMeter&) = delete;

  void accepted(int64_t prompt_tokens);
  void cached(int64_t tokens);
  void computed(int64_t prompt_tokens);
  void started(size_t choice);  // its prompt is computed
  void token(size_t choice, Clock::time_point now);
  void choice_ended(size_t choice) { set_phase(choice, Phase::kEnded); }
  void end(RequestOutcome outcome, Clock::time_point now);  // only the first call counts

 private:
  enum class Phase : uint8_t { kNew, kWaiting, kDecoding, kEnded };

  void set_phase(size_t choice, Phase phase);

  const std::shared_ptr<RequestMetrics> metrics_;
  const std::string model_;
  const Clock::time_point began_;
  std::vector<std::optional<Clock::time_point>> last_tokens_;  // (choices)
  std::vector<Phase> phases_;                                  // (choices)
  bool has_first_ = false;
  bool has_ended_ = false;
};

}  // namespace lockstep
