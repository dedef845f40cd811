// StopSignals: SIGINT and SIGTERM as calls on its own thread: the first requests an orderly end,
// the second an immediate one. Signals are blocked in all threads, so it must be created before any
// other thread.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>

namespace lockstep {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  // no call follows

  void watch(std::function<void()> on_first, std::function<void()> on_second);
  // A second signal has arrived.
  bool is_urgent() const { return is_urgent_.load(); }

 private:
  static constexpr int kWake = SIGUSR1;  // sent by ourselves to end the thread

  sigset_t signals_{};
  std::atomic<bool> is_urgent_{false};
  std::thread thread_;
};

}  // namespace lockstep
