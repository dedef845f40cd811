// Frames of a slowed link arrive with the requested delay, and never early.
#include "transport/slowed_link.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "base/threads/wait.h"
#include "transport/pipe_link.h"

using namespace lockstep;
using std::chrono::microseconds;
using Clock = SlowedLink::Clock;

namespace {

LocalLinks open_slowed(LinkKind kind, int size, int delay_us, double gbit_s = 0) {
  return std::move(
      open_local_links({.kind = kind, .delay_us = delay_us, .gbit_s = gbit_s}, size).value());
}

void send(Link& link, size_t bytes, int value) {
  const auto frame = link.acquire(bytes);
  REQUIRE(frame.size() == bytes);
  std::memset(frame.data(), value, bytes);
  link.post();
}

// Receives the next frame, which must hold `value`; returns when it was seen.
Clock::time_point receive(Link& link, int value) {
  Wait wait(kLong);
  while (link.peek().empty()) REQUIRE(wait.pause("frame").ok());
  const auto seen = Clock::now();
  CHECK(link.peek().front() == static_cast<std::byte>(value));
  link.release();
  return seen;
}

}  // namespace

TEST_CASE("a frame of a slowed link is never visible before its delay is over") {
  for (const LinkKind kind : {LinkKind::kShm, LinkKind::kTcp}) {
    for (const int delay_us : {1, 3, 50, 2000}) {
      CAPTURE(delay_us);
      LocalLinks links = open_slowed(kind, 2, delay_us);
      for (int i = 0; i < 20; ++i) {
        const auto posted = Clock::now();
        send(*links[0][1], 100, i);
        CHECK(receive(*links[1][0], i) - posted >= microseconds(delay_us));
      }
      CHECK(links[1][0]->health().ok());
    }
  }
}

TEST_CASE("frames of a slowed link keep their order and wait concurrently") {
  LocalLinks links = open_slowed(LinkKind::kShm, 2, 200'000);
  const auto posted = Clock::now();
  for (int i = 0; i < 20; ++i) send(*links[0][1], 100, i);
  for (int i = 0; i < 20; ++i) {
    CHECK(receive(*links[1][0], i) - posted >= microseconds(200'000));
  }
  CHECK(Clock::now() - posted < microseconds(20 * 200'000));  // one delay, not twenty
}

TEST_CASE("the delays of several peers run at the same time") {
  LocalLinks links = open_slowed(LinkKind::kShm, 9, 200'000);
  const auto posted = Clock::now();
  for (size_t peer = 1; peer < 9; ++peer) send(*links[peer][0], 100, 1);
  for (size_t peer = 1; peer < 9; ++peer) receive(*links[0][peer], 1);
  CHECK(Clock::now() - posted >= microseconds(200'000));
  CHECK(Clock::now() - posted < microseconds(8 * 200'000));
}

TEST_CASE("a line of limited bandwidth carries no more") {
  LocalLinks links = open_slowed(LinkKind::kShm, 2, 0, 1);
  const auto posted = Clock::now();
  constexpr int kFrames = 10, kBytes = 125'000;  // one millisecond each at 1 Gbit/s
  for (int i = 0; i < kFrames; ++i) send(*links[0][1], kBytes, i);
  for (int i = 0; i < kFrames; ++i) {
    CHECK(receive(*links[1][0], i) - posted >= microseconds(1000 * (i + 1)));
  }
}

TEST_CASE("a sleeping reader of a slowed link wakes when its frame is due") {
  for (const LinkKind kind : {LinkKind::kShm, LinkKind::kTcp}) {
    LocalLinks links = open_slowed(kind, 2, 5000);
    const auto posted = Clock::now();
    send(*links[0][1], 100, 1);
    while (links[1][0]->peek().empty()) links[1][0]->wait_readable(kLong);
    CHECK(Clock::now() - posted >= microseconds(5000));
    CHECK(Clock::now() - posted < kLong);
    // A frame that is due later than the limit does not delay the sleeper.
    links[1][0]->release();
    LocalLinks later = open_slowed(kind, 2, 1'000'000);
    const auto start = Clock::now();
    send(*later[0][1], 100, 1);
    later[1][0]->wait_readable(microseconds(1000));
    CHECK((later[1][0]->peek().empty() || Clock::now() - start >= microseconds(1'000'000)));
  }
}

TEST_CASE("frames in flight are still read when their sender has closed") {
  LocalLinks links = open_slowed(LinkKind::kTcp, 2, 20'000);
  send(*links[0][1], 100, 1);
  send(*links[0][1], 100, 2);
  links[0][1].reset();
  receive(*links[1][0], 1);
  CHECK(links[1][0]->health().ok());
  receive(*links[1][0], 2);
  Wait wait(kLong);
  while (links[1][0]->health().ok()) {
    CHECK(links[1][0]->peek().empty());
    REQUIRE(wait.pause("loss").ok());
  }
  CHECK(links[1][0]->health().error().code == ErrorCode::kPeerLost);
}

TEST_CASE("a time stamp in the future does not delay a frame, and a missing one is an error") {
  for (const int64_t stamp : {std::numeric_limits<int64_t>::max(), int64_t{-1}}) {
    LocalLinks links = open_pipe_links(2);
    SlowedLink right(std::move(links[1][0]), {.delay = microseconds(10), .peer = 0});
    const auto frame = links[0][1]->acquire(65);
    std::memcpy(frame.data(), &stamp, sizeof(stamp));
    frame[64] = std::byte{7};
    links[0][1]->post();
    receive(right, 7);
    send(*links[0][1], 64, 1);
    CHECK(right.peek().empty());
    REQUIRE(!right.health().ok());
    CHECK(right.health().error().code == ErrorCode::kCorrupt);
    CHECK(right.health().error().message.find("rank 0") == 0);
  }
}
