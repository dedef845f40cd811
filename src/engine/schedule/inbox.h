// Inbox: how other threads reach the thread that runs an engine. That thread reads one atomic flag
// in each step and takes the lock only if there is something to take; it sleeps in wait() while
// there is no work.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/engine.h"

namespace lockstep {

class Inbox {
 public:
  struct Submission {
    uint64_t id = 0;
    MakeRequest make;
  };
  struct Contents {
    std::vector<Submission> submitted;
    std::vector<uint64_t> cancelled;
    bool stop = false;
    bool leave = false;
  };

  // Any thread.
  void submit(uint64_t id, MakeRequest make);
  void cancel(uint64_t id);
  void stop();
  void leave();
  // Makes wait() return although there is nothing to take.
  void wake();

  // The running thread only. take() is usually empty, and cheap then.
  Contents take();
  bool has_contents() const { return is_filled_.load(std::memory_order_relaxed); }
  // Returns when there is something to take.
  void wait();
  // Also returns after this time.
  void wait_for(std::chrono::milliseconds time);
  // Drops everything except a stop.
  void clear();

 private:
  template <class Change>
  void change(Change&& apply);

  std::mutex mutex_;
  std::condition_variable changed_;
  Contents contents_;
  // Set under the lock, read without it: noticing it late only moves work to the next step.
  std::atomic<bool> is_filled_{false};
};

}  // namespace lockstep
