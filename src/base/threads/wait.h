// Wait: the wait of every polling loop. It has a deadline, can be cancelled from another thread,
// relaxes the processor and later yields it; time in which the waiting thread itself was not
// running (a busy or paused virtual machine) moves the deadline instead of counting against the
// peer.
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

  // A running thread polls at least this often; a longer gap between two readings of the clock is a
  // stall.
  static constexpr std::chrono::milliseconds kStall{20};

  // The time starts with the first pause(), so that a wait that never pauses costs nothing.
  explicit Wait(std::chrono::milliseconds timeout, const std::atomic<bool>* cancelled = nullptr);

  // One round of waiting: kTimeout at the deadline ("no <what> within N ms"), kCancelled once the
  // flag is set.
  Status pause(std::string_view what);

  // Rounds have become long enough to check for other events too.
  bool is_yielding() const { return is_yielding_; }

  // Something arrived: the next pause() starts a new timeout.
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
// Lets another thread use this processor: by a yield or, if naps are allowed and other threads took
// long turns recently, by a short sleep, after which the scheduler runs this thread at once.
void yield_processor();
// For this process; off by default. Naps pay if each computing thread of a group has its own
// processor, so that long turns are taken by other programs.
void allow_naps(bool may);

}  // namespace lockstep
