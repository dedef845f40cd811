#include "cli/client/node_stop.h"

#include "base/log.h"

namespace lockstep {

void NodeStop::first() {
  std::lock_guard lock(mutex_);
  is_told_ = true;
  drained_by_ = Clock::now();
  if (server_ == nullptr) {
    log_info("stopping: no model is served yet");
    return watchdog_.arm(drained_by_ + kGrace);
  }
  drained_by_ += drain_;
  watchdog_.arm(drained_by_ + kGrace);
  log_info("stopping: no more requests, those in flight have {} s", drain_.count());
  server_->drain(drain_);
}

void NodeStop::second() {
  std::lock_guard lock(mutex_);
  log_info("stopping at once");
  if (server_ == nullptr) return watchdog_.arm(Clock::now());
  watchdog_.arm(Clock::now() + kGrace);
  server_->stop_now();
  if (node_ != nullptr) node_->stop();
}

void NodeStop::attach(Server& server, ClusterNode* node) {
  std::lock_guard lock(mutex_);
  server_ = &server;
  node_ = node;
  if (is_told_) server.stop_now();
}

std::chrono::milliseconds NodeStop::left() const {
  std::lock_guard lock(mutex_);
  return std::chrono::duration_cast<std::chrono::milliseconds>(drained_by_ - Clock::now());
}

}  // namespace lockstep
