// NodeStop: stops `lockstep serve`: the first request gives requests in flight their time, the
// second ends them at once. A request may come before anything serves, while models are loading:
// then there is nothing to wait for. A watchdog limits all of it. Called by the thread of
// StopSignals, and by the serving thread.
#pragma once

#include <chrono>
#include <mutex>

#include "cli/flags/stop_watchdog.h"
#include "node/cluster/cluster_node.h"
#include "server/server.h"

namespace lockstep {

class NodeStop {
 public:
  using Clock = StopWatchdog::Clock;

  // Time for an orderly end after the drain: ranks save pages for two seconds and get a moment to
  // leave. Then the process is ended.
  static constexpr std::chrono::seconds kGrace{10};

  NodeStop(std::chrono::seconds drain, StopWatchdog& watchdog)
      : drain_(drain), watchdog_(watchdog) {}

  // On signals.
  void first();
  void second();

  // From now on these serve, and outlive this; `node` may be null. If a stop was requested already,
  // `server` stops at once.
  void attach(Server& server, ClusterNode* node);
  // The rest of the drain time, after the first stop request.
  std::chrono::milliseconds left() const;

 private:
  const std::chrono::seconds drain_;
  StopWatchdog& watchdog_;
  mutable std::mutex mutex_;
  bool is_told_ = false;
  Clock::time_point drained_by_{};
  Server* server_ = nullptr;  // null: not serving yet
  ClusterNode* node_ = nullptr;
};

}  // namespace lockstep
