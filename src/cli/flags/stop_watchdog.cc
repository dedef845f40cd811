#include "cli/flags/stop_watchdog.h"

#include <algorithm>
#include <utility>

namespace lockstep {

StopWatchdog::StopWatchdog(std::function<void()> end) : end_(std::move(end)) {}

StopWatchdog::~StopWatchdog() {
  {
    std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void StopWatchdog::arm(Clock::time_point deadline) {
  std::lock_guard lock(mutex_);
  deadline_ = std::min(deadline_, deadline);
  if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
  changed_.notify_one();
}

void StopWatchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!is_over_ && Clock::now() < deadline_) changed_.wait_until(lock, deadline_);
  if (std::exchange(is_over_, true)) return;
  lock.unlock();
  end_();
}

}  // namespace lockstep
