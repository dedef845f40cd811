#include "node/cluster/drain_wait.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kDrainPoll{50};

}  // namespace

void DrainWait::wait(std::chrono::milliseconds limit,
                     const std::function<Result<size_t>()>& count) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto open = count();
    if (!open.ok() || open.value() == 0) return;
    std::unique_lock lock(mutex_);
    if (is_stopping_ || std::chrono::steady_clock::now() >= deadline) return;
    changed_.wait_for(lock, kDrainPoll);
  }
}

void DrainWait::stop() {
  const std::lock_guard lock(mutex_);
  is_stopping_ = true;
  changed_.notify_all();
}

}  // namespace lockstep
