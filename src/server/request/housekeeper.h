// Housekeeper: one thread of the server for work that must not run under the locks of a service's
// events: cancelling a request from inside its own event, and checking for streams that have long
// been silent. Any thread may call it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep {

class Housekeeper {
 public:
  using Clock = std::chrono::steady_clock;

  class Watched {
   public:
    virtual ~Watched() = default;
    virtual void on_tick(Clock::time_point now) = 0;
  };

  explicit Housekeeper(std::chrono::milliseconds tick);
  ~Housekeeper();  // work given to run_soon() still runs

  void run_soon(std::function<void()> work);
  // Ticks until `watched` is destroyed. There are no more of these than connections.
  void watch(std::weak_ptr<Watched> watched);

 private:
  void run();

  const std::chrono::milliseconds tick_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  std::vector<std::function<void()>> work_;
  std::vector<std::weak_ptr<Watched>> watched_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lockstep
