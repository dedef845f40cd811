#include "collective/idle_wait.h"

#include <algorithm>

namespace lockstep {
namespace {

// Longer than the pause between two steps of decode, so that these never pay for a wake-up.
constexpr std::chrono::milliseconds kPolling{1};

}  // namespace

void IdleWait::restart() {
  silence_ = {};
  last_ = Clock::now();
}

void IdleWait::rest(Link* link) {
  const Clock::time_point now = Clock::now();
  silence_ += std::min<Clock::duration>(now - last_, Wait::kStall);
  last_ = now;
  if (link && silence_ > kPolling) {
    link->wait_readable(sleep_);
  } else {
    yield_processor();
  }
}

}  // namespace lockstep
