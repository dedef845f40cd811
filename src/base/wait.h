// Wait: the way every polling loop waits. It has a deadline, it can be cancelled from another
// thread, it relaxes the processor and later yields it, and time in which the waiting thread itself
// was not running (a busy or paused virtual machine) moves the deadline instead of counting against
// the peer.
//
//   Wait wait(timeout, &cancelled);
//   while (!ready()) TRY(wait.pause("message from rank 1"));
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace lockstep {

class Wait {
 public:
  using Clock = std::chrono::steady_clock;

  // A thread polls at least this often while it runs; a longer gap between two looks at the clock
  // is a stall.
  static constexpr std::chrono::milliseconds kStall{20};

  // The time runs from the first pause(), so that a wait which never pauses costs nothing.
  explicit Wait(std::chrono::milliseconds timeout, const std::atomic<bool>* cancelled = nullptr);

  // One round of waiting: kTimeout at the deadline ("no <what> within N ms"), kCancelled once the
  // flag is set.
  Status pause(std::string_view what);

  // Rounds have become long enough to look at more than what is waited for.
  bool is_yielding() const { return is_yielding_; }

  // Something arrived: the next pause() starts a new time-out.
  void restart() { rounds_ = 0; }

 private:
  Status look_at_clock(std::string_view what);

  std::chrono::milliseconds timeout_;
  const std::atomic<bool>* cancelled_;
  Clock::time_point start_;
  Clock::time_point last_;
  Clock::time_point deadline_;
  bool is_yielding_ = false;
  uint64_t rounds_ = 0;
};

// Tells the processor that this is a polling loop; some 10 to 40 ns.
void relax_processor();
// Lets another thread have this processor: by a yield, or, where naps are allowed and others took
// long turns in the last moments, by a short sleep, after which the scheduler lets this thread in
// at once.
void yield_processor();
// Of this process; not allowed at first. They pay where each thread of a group that computes has a
// processor of its own, so that who takes long turns is another program.
void allow_naps(bool may);

}  // namespace lockstep
