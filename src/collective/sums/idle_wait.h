// IdleWait: how a rank waits for work that may be long in coming. It polls for about a millisecond,
// so that back-to-back steps lose nothing, and then sleeps on the link that will bring the work,
// checking once after each sleep. It has no deadline of its own: the caller may ask for the silence
// so far, which excludes time in which this thread did not run. Used by Group and by the engine's
// Pipeline.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/result.h"
#include "base/threads/wait.h"
#include "transport/link.h"

namespace lockstep {

class IdleWait {
 public:
  // `sleep`: the time between two checks for other reasons to end the wait.
  explicit IdleWait(std::chrono::milliseconds sleep) : sleep_(sleep) {}

  // Something moved.
  void restart();
  std::chrono::milliseconds silence() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(silence_);
  }

  // One round. Now and then it calls `look`, whose error ends the wait; `link` can wake us, null:
  // only polling is possible.
  template <class Look>
  Status pause(Link* link, const Look& look) {
    if (!sleeps_on(link)) {
      relax_processor();
      if (++rounds_ % kRoundsPerLook != 0) return Ok{};
    }
    TRY(look());
    rest(link);
    return Ok{};
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr uint64_t kRoundsPerLook = 64;  // some 3 us
  // Longer than the pause between two decode steps, so that these never pay for a wake-up.
  static constexpr std::chrono::milliseconds kPolling{1};

  bool sleeps_on(const Link* link) const { return link != nullptr && silence_ > kPolling; }
  void rest(Link* link);

  std::chrono::milliseconds sleep_;
  Clock::time_point last_ = Clock::now();
  Clock::duration silence_{};
  uint64_t rounds_ = 0;
};

}  // namespace lockstep
