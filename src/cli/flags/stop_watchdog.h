// StopWatchdog: ends a process whose orderly end takes too long, so that a hanging thread (in the
// kernel, or in a loop that checks no flag) keeps no node alive. Used by `lockstep serve`; any
// thread may arm it. It does not know what hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace lockstep {

class StopWatchdog {
 public:
  using Clock = std::chrono::steady_clock;

  // `end` is called once, on a separate thread, if this still exists at the deadline.
  explicit StopWatchdog(std::function<void()> end);
  ~StopWatchdog();  // the orderly end: no call follows

  // The earliest of several deadlines counts. The thread starts with the first one.
  void arm(Clock::time_point deadline);

 private:
  void watch();

  const std::function<void()> end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace lockstep
