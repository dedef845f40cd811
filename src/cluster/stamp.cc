#include "cluster/stamp.h"

#include <algorithm>

namespace lockstep {

Stamp StampClock::next(int64_t wall_ms) {
  const int64_t wall = std::clamp<int64_t>(wall_ms, 0, kStampMsMax);
  if (wall > last_.time_ms) {
    last_.time_ms = wall;
    last_.counter = 0;
  } else {
    ++last_.counter;
  }
  return last_;
}

void StampClock::observe(const Stamp& seen) {
  if (seen.time_ms < last_.time_ms) return;
  if (seen.time_ms > last_.time_ms) {
    last_.time_ms = seen.time_ms;
    last_.counter = seen.counter;
  } else {
    last_.counter = std::max(last_.counter, seen.counter);
  }
}

}  // namespace lockstep
