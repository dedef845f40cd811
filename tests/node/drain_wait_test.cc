#include "node/cluster/drain_wait.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>

using namespace lockstep;

namespace {

constexpr std::chrono::hours kLong{1};
constexpr std::chrono::seconds kSoon{20};

}  // namespace

TEST_CASE("a drain ends when no stream is open, at its limit, and at an error") {
  DrainWait drain;
  std::atomic<size_t> open = 3;
  drain.wait(kLong, [&]() -> Result<size_t> { return open--; });
  CHECK(open == SIZE_MAX);
  drain.wait(std::chrono::milliseconds(1), []() -> Result<size_t> { return size_t{1}; });
  drain.wait(kLong, []() -> Result<size_t> { return Error{ErrorCode::kTimeout, "late"}; });
}

TEST_CASE("a stop ends a drain, and a second one does not wait for it") {
  DrainWait drain;
  std::promise<void> counting, counted;
  std::atomic<int> counts = 0;
  auto waiting = std::async(std::launch::async, [&] {
    drain.wait(kLong, [&]() -> Result<size_t> {
      if (counts++ == 0) {
        counting.set_value();
        counted.get_future().wait();
      }
      return size_t{1};
    });
  });
  counting.get_future().wait();
  // The drain waits for a count, that is for its loop, meanwhile.
  auto stopped = std::async(std::launch::async, [&] {
    drain.stop();
    drain.stop();
  });
  CHECK(stopped.wait_for(kSoon) == std::future_status::ready);
  counted.set_value();
  CHECK(waiting.wait_for(kSoon) == std::future_status::ready);
  drain.stop();
  drain.wait(kLong, []() -> Result<size_t> { return size_t{1}; });  // stays stopped
}
