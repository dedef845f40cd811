#include "collective/sums/idle_wait.h"

#include <algorithm>

namespace lockstep {

void IdleWait::restart() {
  silence_ = {};
  last_ = Clock::now();
}

void IdleWait::rest(Link* link) {
  const Clock::time_point now = Clock::now();
  silence_ += std::min<Clock::duration>(now - last_, Wait::kStall);
  last_ = now;
  if (sleeps_on(link)) {
    link->wait_readable(sleep_);
  } else {
    yield_processor();
  }
}

}  // namespace lockstep
