#include "access/request_limiter.h"

#include <doctest/doctest.h>

#include <vector>

namespace lockstep {
namespace {

using Permit = RequestLimiter::Permit;
using std::chrono::milliseconds;

const RequestLimiter::Clock::time_point kStart =
    RequestLimiter::Clock::time_point() + std::chrono::hours(1);

// The "retry after" seconds of a refusal; 0: admitted.
int wait_of(const ApiResult<Permit>& result) {
  if (result.ok()) return 0;
  CHECK(result.error().status == 429);
  CHECK(result.error().code == "rate_limit_exceeded");
  return result.error().retry_after_s;
}

}  // namespace

TEST_CASE("a client can use its minute's requests at once, and then one per interval") {
  RequestLimiter limiter({.requests_per_minute = 6});
  for (int i = 0; i < 6; ++i) CHECK(wait_of(limiter.admit(1, kStart)) == 0);
  CHECK(wait_of(limiter.admit(1, kStart)) == 10);
  CHECK(wait_of(limiter.admit(2, kStart)) == 0);  // clients are counted separately
  CHECK(wait_of(limiter.admit(1, kStart + milliseconds(9'500))) == 1);
  CHECK(wait_of(limiter.admit(1, kStart + milliseconds(10'001))) == 0);
  CHECK(wait_of(limiter.admit(1, kStart + milliseconds(10'001))) == 10);
  // An hour later its allowance is no larger than at first.
  const auto later = kStart + std::chrono::hours(1);
  for (int i = 0; i < 6; ++i) CHECK(wait_of(limiter.admit(1, later)) == 0);
  CHECK(wait_of(limiter.admit(1, later)) == 10);
}

TEST_CASE("concurrent requests are limited; one counts until its last permit is reset") {
  RequestLimiter limiter({.requests_at_once = 2});
  auto first = limiter.admit(1, kStart);
  const auto second = limiter.admit(1, kStart);
  CHECK(wait_of(limiter.admit(1, kStart)) == 1);
  CHECK(wait_of(limiter.admit(2, kStart)) == 0);
  const Permit copy = first.value();
  first.value().reset();
  CHECK(wait_of(limiter.admit(1, kStart)) == 1);
  const_cast<Permit&>(copy).reset();
  CHECK(wait_of(limiter.admit(1, kStart)) == 0);
}

TEST_CASE("a request refused for concurrency does not count against the minute") {
  RequestLimiter limiter({.requests_per_minute = 2, .requests_at_once = 1});
  auto running = limiter.admit(1, kStart);
  CHECK(wait_of(limiter.admit(1, kStart)) == 1);
  running.value().reset();
  CHECK(wait_of(limiter.admit(1, kStart)) == 0);
  CHECK(wait_of(limiter.admit(1, kStart)) == 30);
}

TEST_CASE("without limits no client is counted; with them the client table is bounded") {
  RequestLimiter free({.clients_max = 1});
  for (uint64_t client = 0; client < 100; ++client) CHECK(wait_of(free.admit(client, kStart)) == 0);

  RequestLimiter limiter({.requests_per_minute = 60, .clients_max = 3});
  for (uint64_t client = 0; client < 3; ++client) {
    CHECK(wait_of(limiter.admit(client, kStart)) == 0);
  }
  CHECK(wait_of(limiter.admit(3, kStart)) == 1);
  CHECK(wait_of(limiter.admit(0, kStart)) == 0);
  // After two seconds all clients have their full allowance again, except the one with a running
  // request.
  const auto running = limiter.admit(1, kStart);
  CHECK(wait_of(limiter.admit(3, kStart + milliseconds(2'001))) == 0);
  CHECK(wait_of(limiter.admit(4, kStart + milliseconds(2'001))) == 0);
  CHECK(wait_of(limiter.admit(5, kStart + milliseconds(2'001))) == 1);
}

}  // namespace lockstep
