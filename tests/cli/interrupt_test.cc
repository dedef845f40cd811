#include "cli/flags/interrupt.h"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a Ctrl-C is noted once for all nested guards, until it is forgotten") {
  const InterruptGuard chat;
  CHECK(!InterruptGuard::is_interrupted());
  ::raise(SIGINT);  // after the question was read, before its answer has begun
  {
    const InterruptGuard answer;
    CHECK(InterruptGuard::is_interrupted());
  }
  InterruptGuard::forget();
  const InterruptGuard answer;
  CHECK(!InterruptGuard::is_interrupted());
}

TEST_CASE("an outermost guard begins without the Ctrl-C of an earlier one") {
  {
    const InterruptGuard earlier;
    ::raise(SIGINT);
  }
  const InterruptGuard guard;
  CHECK(!InterruptGuard::is_interrupted());
}
