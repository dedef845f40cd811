// DemoPlug: the one thing that `lockstep serve --demo` allows more than `serve`: to kill a worker
// process, so that its group heals before the user's eyes (server/browser/demo_routes.h). On the
// event loop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "base/result.h"
#include "node/models/model_service.h"
#include "server/request/errors.h"

namespace lockstep {

// Kills the worker of a rank, or of the highest rank. kInvalidArgument: there is no such rank;
// kPeerLost: the group is not serving. Does not wait.
using KillWorker = std::function<Result<RankStatus>(std::optional<int> rank)>;

class DemoPlug {
 public:
  using Clock = std::chrono::steady_clock;

  // A group that is killed faster than it heals would give up after some attempts.
  static constexpr std::chrono::milliseconds kPause{2000};

  explicit DemoPlug(KillWorker kill) : kill_(std::move(kill)) {}

  // The worker that was killed. 404: there is no such rank; 409: the group is not serving; 429:
  // less than kPause after the last one.
  ApiResult<RankStatus> pull(std::optional<int> rank, Clock::time_point now) {
    if (last_ && now - *last_ < kPause) {
      return ApiError{429,
                      "a worker was killed less than 2 s ago: wait for the group to form again", "",
                      "rate_limit_exceeded"};
    }
    const Result<RankStatus> killed = kill_(rank);
    if (killed.ok()) {
      last_ = now;
      return killed.value();
    }
    if (killed.error().code == ErrorCode::kInvalidArgument) {
      return ApiError{404, killed.error().message, "rank", "rank_not_found"};
    }
    return ApiError{409, killed.error().message, "", "not_serving"};
  }

 private:
  const KillWorker kill_;
  std::optional<Clock::time_point> last_;
};

}  // namespace lockstep
