// Housekeeper: one thread of the server for what must not run on a thread that holds somebody
// else's locks: cancelling a request from inside its own event, and looking for streams that have
// been silent for long. Any thread may call it.
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
  ~Housekeeper();  // what was given to run_soon() still runs

  void run_soon(std::function<void()> work);
  // Ticks until it is gone. There are no more of these than connections.
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
