// StopSignals: SIGINT and SIGTERM as calls on a thread of its own: the first asks for an orderly
// end, the second for one at once. Signals are blocked in all threads, so it is made before any
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
  ~StopSignals();  // nothing is called any more

  void watch(std::function<void()> on_first, std::function<void()> on_second);
  // A signal has come again.
  bool is_urgent() const { return is_urgent_.load(); }

 private:
  static constexpr int kWake = SIGUSR1;  // sent by ourselves, to end the thread

  sigset_t signals_{};
  std::atomic<bool> is_urgent_{false};
  std::thread thread_;
};

}  // namespace lockstep
