// SignalStop: calls back once on SIGINT or SIGTERM, on a thread of its own. Signals must be blocked
// in all threads, so it is made before any other thread. Ignores SIGPIPE. For commands that serve
// until they are told to end.
#pragma once

#include <signal.h>

#include <functional>
#include <thread>

namespace lockstep {

class SignalStop {
 public:
  SignalStop();
  // `stop` must be callable until this object has gone.
  void watch(std::function<void()> stop);
  ~SignalStop();
  SignalStop(const SignalStop&) = delete;
  SignalStop& operator=(const SignalStop&) = delete;

 private:
  static constexpr int kWake = SIGUSR1;  // sent by ourselves, to end the thread
  sigset_t signals_{};
  std::thread thread_;
};

}  // namespace lockstep
