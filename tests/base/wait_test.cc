#include "base/wait.h"

#include <doctest/doctest.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#endif

#include <thread>

using namespace lockstep;

TEST_CASE("a wait ends at its deadline with what was waited for") {
  Wait wait(std::chrono::milliseconds{5});
  const auto start = Wait::Clock::now();
  Status status = Ok{};
  while (status.ok()) status = wait.pause("message from rank 1");
  CHECK(status.error().code == ErrorCode::kTimeout);
  CHECK(status.error().message == "no message from rank 1 within 5 ms");
  CHECK(Wait::Clock::now() - start >= std::chrono::milliseconds{5});
}

TEST_CASE("a restarted wait has its whole time again") {
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
  Wait wait(std::chrono::milliseconds{300});
  REQUIRE(wait.pause("message").ok());
  // The stall: longer than the whole time-out, without a pause in it.
  const auto stall_end = Wait::Clock::now() + std::chrono::milliseconds{350};
  while (Wait::Clock::now() < stall_end) {
  }
  // Few enough that a busy machine does not spend another time-out on them.
  for (int round = 0; round < 16; ++round) CHECK(wait.pause("message").ok());
}

#if defined(__linux__)
TEST_CASE("beside a busy thread a waiting one sleeps, so that it is let in again at once") {
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
    Wait wait(std::chrono::milliseconds{200});
    while (wait.pause("message").ok()) {
    }
    allow_naps(false);
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    sleeps = used.ru_nvcsw;
    is_over = true;
    busy.join();
  });
  waiting.join();
  CHECK(sleeps > 50);
}
#endif
