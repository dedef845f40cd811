#include "cli/flags/stop_watchdog.h"

#include <doctest/doctest.h>

#include <atomic>

namespace lockstep {

using Clock = StopWatchdog::Clock;

TEST_CASE("a stop that takes longer than its deadline is forced, once") {
  std::atomic<int> ends{0};
  StopWatchdog watchdog([&] {
    ++ends;
    ends.notify_all();
  });
  watchdog.arm(Clock::now() + std::chrono::hours(1));
  CHECK(ends == 0);
  watchdog.arm(Clock::now());  // the earliest of several counts
  ends.wait(0);
  watchdog.arm(Clock::now());
  CHECK(ends == 1);
}

TEST_CASE("a stop within its deadline is left alone") {
  int ends = 0;
  {
    StopWatchdog never_armed([&] { ++ends; });
  }
  {
    StopWatchdog watchdog([&] { ++ends; });
    watchdog.arm(Clock::now() + std::chrono::hours(1));
  }
  CHECK(ends == 0);
}

}  // namespace lockstep
