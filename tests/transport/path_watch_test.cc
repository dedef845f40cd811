// Whether silence on a connection means a dead network or a peer that does not read.
#include "transport/path_watch.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <functional>

#include "transport/tcp/rendezvous.h"
#include "transport/tcp/socket.h"

using namespace lockstep;
using std::chrono::milliseconds;

namespace {

using Counters = PathWatch::Counters;

// Polls every 20 ms for `span`; returns when the path was declared dead, -1 if it was not.
int dead_after_ms(PathWatch& watch, milliseconds span,
                  const std::function<Counters(int at_ms)>& counters) {
  const PathWatch::Time begin{std::chrono::hours(1)};
  for (int at = 0; at <= span.count(); at += 20) {
    if (watch.judge(counters(at), begin + milliseconds(at))) return at;
  }
  return -1;
}

}  // namespace

TEST_CASE("data that is retransmitted and not acknowledged is a dead path after 1 s") {
  PathWatch watch;
  const int dead = dead_after_ms(watch, milliseconds(5'000), [](int at) {
    // As seen on Linux with its loopback down: retransmitted after 204, 612 and 1428 ms.
    return Counters{.unacknowledged = 1,
                    .repeats = at < 204    ? 0u
                               : at < 612  ? 1u
                               : at < 1428 ? 2u
                                           : 3u,
                    .answer_age = milliseconds(300 + at)};
  });
  CHECK(dead > 1'000);
  CHECK(dead <= 1'040);
}

TEST_CASE("packets that are dropped locally are a dead path too") {
  PathWatch watch;
  const int dead = dead_after_ms(watch, milliseconds(5'000), [](int at) {
    return Counters{.probes = at < 204   ? 0u
                              : at < 612 ? 1u
                                         : 2u,
                    .answer_age = milliseconds(300 + at)};
  });
  CHECK(dead > 1'200);
  CHECK(dead <= 1'260);
}

TEST_CASE("an idle connection's second unanswered probe is a dead path") {
  PathWatch watch;
  const int dead = dead_after_ms(watch, milliseconds(5'000), [](int at) {
    return Counters{.probes = at < 1'000   ? 0u
                              : at < 2'000 ? 1u
                                           : 2u,
                    .is_idle_probe = true,
                    .answer_age = milliseconds(at)};
  });
  CHECK(dead > 2'300);
  CHECK(dead <= 2'360);
}

TEST_CASE("acknowledged bytes and a peer without room are not a dead path") {
  PathWatch busy;
  CHECK(dead_after_ms(busy, milliseconds(60'000), [](int) {
          return Counters{.unacknowledged = 5, .answer_age = milliseconds(4)};
        }) == -1);
  PathWatch idle;  // every second a probe and its answer
  CHECK(dead_after_ms(idle, milliseconds(60'000), [](int at) {
          return Counters{.is_idle_probe = true, .answer_age = milliseconds(at % 1'000)};
        }) == -1);
  PathWatch full;  // window probes back off; now and then one is retransmitted
  CHECK(dead_after_ms(full, milliseconds(60'000), [](int at) {
          const int since = at % 3'200;
          return Counters{.probes = since > 2'000 ? 1u : 0u, .answer_age = milliseconds(since)};
        }) == -1);
}

TEST_CASE("one lost packet is not a dead path") {
  PathWatch watch;
  CHECK(dead_after_ms(watch, milliseconds(60'000), [](int at) {
          const int since = at % 700;
          return Counters{.unacknowledged = 1,
                          .repeats = since > 204 ? 1u : 0u,
                          .answer_age = milliseconds(since)};
        }) == -1);
}

TEST_CASE("time in which no one polled counts little") {
  PathWatch watch;
  PathWatch::Time now{std::chrono::hours(1)};
  const Counters silent{.unacknowledged = 1, .repeats = 9, .answer_age = std::chrono::hours(1)};
  for (int i = 0; i < 10; ++i, now += std::chrono::seconds(10)) CHECK(!watch.judge(silent, now));
  for (int i = 0; i < 2; ++i, now += std::chrono::seconds(10)) watch.judge(silent, now);
  CHECK(watch.judge(silent, now));
}

TEST_CASE("idle connections of links are probed, and other sockets do no harm") {
  auto socket = open_tcp_socket(AF_INET);
  REQUIRE(socket.ok());
  PathWatch::prepare(socket.value().get());
  int is_on = 0;
  socklen_t length = sizeof(is_on);
  REQUIRE(::getsockopt(socket.value().get(), SOL_SOCKET, SO_KEEPALIVE, &is_on, &length) == 0);
  CHECK(is_on != 0);
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  const UniqueFd left(fds[0]), right(fds[1]);
  PathWatch watch;
  PathWatch::prepare(left.get());
  CHECK(!watch.is_dead(left.get()));
}
