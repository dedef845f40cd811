#include "cli/signal_stop.h"

#include <pthread.h>

#include <utility>

#include "base/log.h"

namespace lockstep {

SignalStop::SignalStop() {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, kWake}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

void SignalStop::watch(std::function<void()> stop) {
  thread_ = std::thread([this, stop = std::move(stop)] {
    int signal = 0;
    sigwait(&signals_, &signal);
    if (signal == kWake) return;
    log_info("stopping");
    stop();
  });
}

SignalStop::~SignalStop() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), kWake);
  thread_.join();
}

}  // namespace lockstep
