#include "base/threads/wait.h"

#include <doctest/doctest.h>
#include <poll.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#endif

#include <thread>

using namespace lockstep;

TEST_CASE("a wait ends at its deadline and names what it waited for") {
  Wait wait(std::chrono::milliseconds{5});
  const auto start = Wait::Clock::now();
  Status status = Ok{};
  while (status.ok()) status = wait.pause("message from rank 1");
  CHECK(status.error().code == ErrorCode::kTimeout);
  CHECK(status.error().message == "no message from rank 1 within 5 ms");
  CHECK(Wait::Clock::now() - start >= std::chrono::milliseconds{5});
}

TEST_CASE("a restarted wait has its full time again") {
  Wait wait(std::chrono::milliseconds{5});
  Status status = Ok{};
  while (status.ok()) status = wait.pause("message");
  wait.restart();
  const auto start = Wait::Clock::now();
  CHECK(wait.pause("message").ok());
  for (status = Ok{}; status.ok();) status = wait.pause("message");
  CHECK(Wait::Clock::now() - start >= std::chrono::milliseconds{5});
}

TEST_CASE("a cancelled wait ends long before its deadline") {
  const std::atomic<bool> cancelled{true};
  Wait wait(std::chrono::hours{1}, &cancelled);
  Status status = Ok{};
  int rounds = 0;
  while (status.ok() && ++rounds < 100) status = wait.pause("message");
  CHECK(status.error().code == ErrorCode::kCancelled);
}

TEST_CASE("time in which the waiting thread did not run is not held against the peer") {
  constexpr std::chrono::milliseconds kTimeout{200}, kStalled{250};
  Wait wait(kTimeout);
  REQUIRE(wait.pause("message").ok());
  const auto begin = Wait::Clock::now();  // a stall, during which pause() is not called
  while (Wait::Clock::now() - begin < kStalled) ::poll(nullptr, 0, kStalled.count());
  // Two of these calls look at the clock, so time that passes between them is either a stall too or
  // too short to matter.
  for (int round = 0; round < 8; ++round) CHECK(wait.pause("message").ok());
}

#if defined(__linux__)
TEST_CASE("next to a busy thread a waiting one sleeps, so that it is scheduled again at once") {
  constexpr long kSleeps = 50;
  long sleeps = 0;
  std::atomic<bool> is_over{false};
  std::thread waiting([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    CHECK(::sched_setaffinity(0, sizeof(one), &one) == 0);
    std::thread busy([&] {  // on the same processor
      while (!is_over.load()) relax_processor();
    });
    allow_naps(true);
    Wait wait(std::chrono::seconds{20});  // a yield is not a sleep, however long it takes
    while (sleeps < kSleeps && wait.pause("message").ok()) {
      rusage used{};
      ::getrusage(RUSAGE_THREAD, &used);
      sleeps = used.ru_nvcsw;
    }
    allow_naps(false);
    is_over = true;
    busy.join();
  });
  waiting.join();
  CHECK(sleeps >= kSleeps);
}
#endif
