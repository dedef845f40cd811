#include "collective/sums/idle_wait.h"

#include <doctest/doctest.h>

#include <chrono>

#include "base/threads/wait.h"

using namespace lockstep;

namespace {

// Nothing ever arrives, and each sleep returns at once.
class SilentLink final : public Link {
 public:
  size_t frame_bytes_max() const override { return 0; }
  std::span<std::byte> acquire(size_t) override { return {}; }
  void post() override {}
  bool flush() override { return true; }
  std::span<const std::byte> peek() override { return {}; }
  void release() override {}
  void wait_readable(std::chrono::microseconds) override { ++sleeps; }
  Status health() const override { return Ok{}; }

  int sleeps = 0;
};

}  // namespace

TEST_CASE("a long wait checks once between sleeps, and polls again after progress") {
  SilentLink link;
  int looks = 0;
  IdleWait idle(std::chrono::milliseconds(10));
  const auto pause = [&] {
    return idle.pause(&link, [&looks]() -> Status {
      ++looks;
      return Ok{};
    });
  };
  Wait wait(std::chrono::seconds(30));
  while (link.sleeps == 0) {
    REQUIRE(pause().ok());
    REQUIRE(wait.pause("a sleep").ok());
  }
  const int polled = looks;
  for (int round = 0; round < 10; ++round) REQUIRE(pause().ok());
  CHECK(link.sleeps == 11);
  CHECK(looks == polled + 10);
  idle.restart();
  for (int round = 0; round < 10; ++round) REQUIRE(pause().ok());
  CHECK(link.sleeps == 11);
  CHECK(looks <= polled + 11);
}

TEST_CASE("a long wait without a link to sleep on keeps polling") {
  IdleWait idle(std::chrono::milliseconds(10));
  int looks = 0;
  for (int round = 0; round < 640; ++round) {
    REQUIRE(idle.pause(nullptr,
                       [&looks]() -> Status {
                         ++looks;
                         return Ok{};
                       })
                .ok());
  }
  CHECK(looks == 10);
}
