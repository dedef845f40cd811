// run_load: sends the requests of a LoadPlan to a server and measures its streamed answers. All of
// it happens on one EventLoop, so that thousands of streams cost one thread.
//
// With a rate the requests go out at their planned times, however slow the server is, and all times
// count from then on, not from when a connection was free: a server that stalls is charged for all
// who had to wait meanwhile (no "coordinated omission"). Without one, `concurrency` requests are
// kept under way, and the next begins when one has ended. Used by `lockstep bench serve`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/load_plan.h"
#include "cli/time_distribution.h"
#include "net/frame_connection.h"

namespace lockstep {

enum class LoadApi : uint8_t { kCompletions, kChat };

struct LoadTarget {
  NetAddress address;
  std::string base = "/v1";  // of the paths
  std::string api_key;       // empty: none is sent
  std::string model;
  LoadApi api = LoadApi::kCompletions;
  double temperature = 0;
};

// "http://host:port", "host:port", with or without the path of the API ("/v1" if there is none).
Result<LoadTarget> parse_load_target(std::string_view url);

// What a request must keep to be counted as good; 0: anything.
struct ServiceLimits {
  double first_token_ms = 0;
  double token_ms = 0;  // the mean after the first
  double whole_ms = 0;

  bool any() const { return first_token_ms > 0 || token_ms > 0 || whole_ms > 0; }
};

struct LoadOptions {
  LoadShape shape;
  int concurrency = 0;    // requests under way at most; 0 (with a rate): kRunningMax
  int64_t requests = 0;   // 0: as many as `duration_s` allows
  double duration_s = 0;  // in which requests begin; 0: until all have been sent
  std::chrono::milliseconds timeout{600'000};  // of one request
  ServiceLimits limits;

  static constexpr int kRunningMax = 16'384;
};

struct LoadErrors {
  uint64_t count = 0;
  std::string example;  // what was said the first time
};

struct LoadFigures {
  uint64_t sent = 0;
  uint64_t completed = 0;     // the whole answer came
  uint64_t good = 0;          // of them, those that kept all ServiceLimits
  int64_t prompt_tokens = 0;  // of completed requests, as the server counts, else as planned
  int64_t new_tokens = 0;     // the same, else events
  bool are_tokens_counted_here = false;  // some server said nothing of its tokens
  double elapsed_s = 0;                  // from the start to the last end
  int running_max = 0;

  TimeDistribution first_token;  // seconds from the intended time, as `whole`
  TimeDistribution inter_token;  // between two events that bring something of the answer
  TimeDistribution token;        // of a request: the mean after its first token
  TimeDistribution whole;
  TimeDistribution lateness;  // from the intended time to when the request was sent
  // By kind: "429", "not reached", "broken off", "timed out", "error in the stream"...
  std::map<std::string, LoadErrors> errors;
};

using LoadProgress = std::function<void(uint64_t completed, uint64_t failed, int running)>;

// Blocks until the last request has ended, each within its time-out. `on_progress` is called about
// each second, on the loop's thread.
LoadFigures run_load(const LoadTarget& target, const LoadOptions& options,
                     const LoadProgress& on_progress);

}  // namespace lockstep
