// run_load: sends the requests of a LoadPlan to a server and measures its streamed answers.
// Everything runs on one EventLoop, so that thousands of streams cost one thread.
//
// With a rate, requests are sent at their planned times, however slow the server is, and all times
// count from the planned time, not from when a connection was free: a server that stalls is charged
// for every request delayed by that (no "coordinated omission"). Without one, `concurrency`
// requests are kept in flight; the next begins when one ends. Used by `lockstep bench serve`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/bench/load_plan.h"
#include "cli/text/time_distribution.h"
#include "net/frames/frame_connection.h"

namespace lockstep {

enum class LoadApi : uint8_t { kCompletions, kChat };

struct LoadTarget {
  NetAddress address;
  std::string base = "/v1";  // of the paths
  std::string api_key;       // empty: not sent
  std::string model;
  LoadApi api = LoadApi::kCompletions;
  double temperature = 0;
};

// "http://host:port", "host:port", with or without the path of the API ("/v1" if there is none).
Result<LoadTarget> parse_load_target(std::string_view url);

// Limits for a request to count as good; 0: no limit.
struct ServiceLimits {
  double first_token_ms = 0;
  double token_ms = 0;  // mean after the first token
  double whole_ms = 0;

  bool any() const { return first_token_ms > 0 || token_ms > 0 || whole_ms > 0; }
};

struct LoadOptions {
  LoadShape shape;
  int concurrency = 0;    // limit of requests in flight; 0 (with a rate): kRunningMax
  int64_t requests = 0;   // 0: as many as `duration_s` allows
  double duration_s = 0;  // time in which requests begin; 0: until all have been sent
  std::chrono::milliseconds timeout{600'000};  // of one request
  ServiceLimits limits;

  static constexpr int kRunningMax = 16'384;
};

struct LoadErrors {
  uint64_t count = 0;
  std::string example;  // the first message
};

struct LoadFigures {
  uint64_t sent = 0;
  uint64_t completed = 0;     // with their whole answer received
  uint64_t good = 0;          // the completed ones within all ServiceLimits
  int64_t prompt_tokens = 0;  // of completed requests, as counted by the server, else as planned
  int64_t new_tokens = 0;     // the same, else the number of events
  bool are_tokens_counted_here = false;  // a server did not report its tokens
  double elapsed_s = 0;                  // from the start to the last end
  int running_max = 0;

  TimeDistribution first_token;  // seconds from the intended time, like `whole`
  TimeDistribution inter_token;  // between two events with parts of the answer
  TimeDistribution token;        // per request: the mean after its first token
  TimeDistribution whole;
  TimeDistribution lateness;  // from the intended time to when the request was sent
  // By kind: "429", "not reached", "broken off", "timed out", "error in the stream"...
  std::map<std::string, LoadErrors> errors;
};

using LoadRunProgress = std::function<void(uint64_t completed, uint64_t failed, int running)>;

// Blocks until the last request has ended, each within its time-out. `on_progress` is called about
// once a second, on the loop's thread.
LoadFigures run_load(const LoadTarget& target, const LoadOptions& options,
                     const LoadRunProgress& on_progress);

}  // namespace lockstep
