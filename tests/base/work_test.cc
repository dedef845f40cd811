#include "base/threads/work.h"

#include <doctest/doctest.h>

#include <thread>

using namespace lockstep;

TEST_CASE("a thread without a work budget may run for ever") {
  for (uint32_t i = 0; i < 10 * Work::kChecksPerLook; ++i) REQUIRE(Work::check().ok());
}

TEST_CASE("cancelled work ends at the next check, when another thread cancels it") {
  Work work(std::chrono::hours(1));
  const Work::Scope scope(work);
  CHECK(Work::check().ok());
  std::thread([&work] { work.cancel(); }).join();
  const Status status = Work::check();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ErrorCode::kCancelled);
}

TEST_CASE("work whose budget is spent stays refused, with advice") {
  Work work(std::chrono::milliseconds(0));
  const Work::Scope scope(work);
  while (!Work::is_over()) {
  }
  const Status status = Work::check();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ErrorCode::kExhausted);
  CHECK(status.error().message ==
        "reading the request takes more than 0 ms of processor time; make it smaller or simpler");
}

TEST_CASE("scopes nest, and the outer one is restored") {
  Work outer(std::chrono::hours(1));
  const Work::Scope outer_scope(outer);
  {
    Work inner(std::chrono::hours(1));
    inner.cancel();
    const Work::Scope inner_scope(inner);
    CHECK(Work::is_over());
  }
  CHECK_FALSE(Work::is_over());
}
