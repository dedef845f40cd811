// Wait: the way every polling loop waits. It has a deadline, it can be cancelled from another thread, it
// relaxes the processor and later yields it, and time in which the waiting thread itself was not running (a busy or
// paused virtual machine) moves the deadline instead of counting against the peer.
//
//   Wait wait(timeout, &cancelled);
//   while (!ready()) TRY(wait.pause("a message from rank 1"));
#pragma once

#include <atomic>
#include <chrono>
#include <string_view>

#include "base/result.h"

namespace lockstep {

class Wait {
 public:
  using Clock = std::chrono::steady_clock;

  // A thread polls at least this often while it runs; a longer gap between two polls is a stall.
  static constexpr std::chrono::milliseconds kStall{20};

  explicit Wait(std::chrono::milliseconds timeout, const std::atomic<bool>* cancelled = nullptr);

  // One round of waiting: kTimeout at the deadline ("no <what> within N ms"), kCancelled once the flag is set.
  Status pause(std::string_view what);

 private:
  std::chrono::milliseconds timeout_;
  const std::atomic<bool>* cancelled_;
  Clock::time_point last_;
  Clock::time_point deadline_;
  int rounds_ = 0;
};

}  // namespace lockstep
