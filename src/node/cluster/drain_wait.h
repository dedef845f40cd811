// DrainWait: a node that leaves its cluster waits until its streams have ended, or until it is told
// to stop at once. Used by ClusterNode; wait() from one thread, stop() from any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>

#include "base/result.h"

namespace lockstep {

class DrainWait {
 public:
  // Until `count` gives 0 or an error, `limit` is over or stop() was called. `count` may be slow:
  // it runs without the lock that stop() takes.
  void wait(std::chrono::milliseconds limit, const std::function<Result<size_t>()>& count);
  // Ends the wait, and each later one. Never waits for it.
  void stop();

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool is_stopping_ = false;
};

}  // namespace lockstep
