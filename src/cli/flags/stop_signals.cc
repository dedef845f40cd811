#include "cli/flags/stop_signals.h"

#include <pthread.h>

#include <utility>

namespace lockstep {

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, kWake}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

void StopSignals::watch(std::function<void()> on_first, std::function<void()> on_second) {
  thread_ = std::thread([this, on_first = std::move(on_first), on_second = std::move(on_second)] {
    for (int count = 0;; ++count) {
      int signal = 0;
      sigwait(&signals_, &signal);
      if (signal == kWake) return;
      if (count > 0) is_urgent_.store(true);
      (count == 0 ? on_first : on_second)();
    }
  });
}

StopSignals::~StopSignals() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), kWake);
  thread_.join();
}

}  // namespace lockstep
