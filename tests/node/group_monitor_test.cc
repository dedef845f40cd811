#include "node/group/group_monitor.h"

#include <doctest/doctest.h>

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

const GroupMonitor::Time kStart = GroupMonitor::Time() + 1000s;

GroupMonitor ready_pair() {
  GroupMonitor monitor({{101}, {102}}, MonitorTimeouts{1500ms, 10s, 10s}, kStart);
  monitor.ready(0, kStart);
  monitor.ready(1, kStart);
  return monitor;
}

}  // namespace

TEST_CASE("a rank without heartbeats is blamed after its time-out, and no sooner") {
  GroupMonitor monitor = ready_pair();
  monitor.heartbeat(0, {1, Progress::kIdle}, kStart + 1400ms);
  CHECK_FALSE(monitor.check(kStart + 1500ms));
  const auto verdict = monitor.check(kStart + 1501ms);
  REQUIRE(verdict);
  CHECK(verdict->rank == 1);
  CHECK(verdict->error.code == ErrorCode::kPeerLost);
  CHECK(verdict->error.message ==
        "rank 1 (pid 102) has not answered for 1501 ms (stopped or hung)");
  CHECK(verdict->must_go);
  CHECK(monitor.is_silent(1, kStart + 1501ms));
  CHECK_FALSE(monitor.is_silent(0, kStart + 1501ms));
}

TEST_CASE("while a model loads heartbeats may come late") {
  GroupMonitor monitor({{101}, {102}}, MonitorTimeouts{1500ms, 10s, 10s}, kStart);
  monitor.ready(0, kStart);
  CHECK_FALSE(monitor.is_ready());
  CHECK_FALSE(monitor.check(kStart + 9s));
  CHECK(monitor.check(kStart + 11s));
}

TEST_CASE("a rank that computes without ticks is blamed although its heartbeats arrive") {
  GroupMonitor monitor = ready_pair();
  for (auto now = kStart; now <= kStart + 9900ms; now += 100ms) {
    monitor.heartbeat(0, {7, 1}, now);  // is waiting for rank 1
    monitor.heartbeat(1, {7, Progress::kComputing}, now);
    REQUIRE_FALSE(monitor.check(now));
  }
  monitor.heartbeat(0, {7, 1}, kStart + 10'200ms);
  monitor.heartbeat(1, {7, Progress::kComputing}, kStart + 10'200ms);
  const auto verdict = monitor.check(kStart + 10'200ms);
  REQUIRE(verdict);
  CHECK(verdict->rank == 1);
  CHECK(verdict->error.message.find("without progress (hung)") != std::string::npos);
}

TEST_CASE("an idle rank and one that waits for another are never hung") {
  GroupMonitor monitor = ready_pair();
  for (auto now = kStart; now <= kStart + 60s; now += 100ms) {
    monitor.heartbeat(0, {7, Progress::kIdle}, now);
    monitor.heartbeat(1, {7, 0}, now);
    REQUIRE_FALSE(monitor.check(now));
  }
}

TEST_CASE("a stall of the watching side moves every deadline") {
  GroupMonitor monitor = ready_pair();
  monitor.stalled(30s);
  CHECK_FALSE(monitor.check(kStart + 31s));
  CHECK(monitor.next_deadline() == kStart + 30s + 1500ms);
  CHECK(monitor.check(kStart + 30s + 1501ms));
}

TEST_CASE("an echo of a loss waits for the rank that was lost") {
  GroupMonitor monitor = ready_pair();
  monitor.fatal(0, Error{ErrorCode::kPeerLost, "rank 1 is gone"}, kStart);
  monitor.ended(0, "exited with status 1", kStart + 1ms);
  CHECK_FALSE(monitor.check(kStart + 2ms));
  monitor.ended(1, "was killed by signal 9 (SIGKILL)", kStart + 3ms);
  const auto verdict = monitor.check(kStart + 3ms);
  REQUIRE(verdict);
  CHECK(verdict->rank == 1);
  CHECK(verdict->error.message == "rank 1 (pid 102) was killed by signal 9 (SIGKILL)");
}

TEST_CASE("an echo without a known cause becomes the cause after a moment") {
  GroupMonitor monitor = ready_pair();
  monitor.fatal(0, Error{ErrorCode::kTimeout, "rank 1: no message within 10 ms"}, kStart);
  CHECK_FALSE(monitor.check(kStart + 300ms));
  const auto verdict = monitor.check(kStart + 301ms);
  REQUIRE(verdict);
  CHECK(verdict->error.message == "rank 0 (pid 101) gave up: rank 1: no message within 10 ms");
}

TEST_CASE("a rank that left an epoch is named and may stay, and its exit is still noticed") {
  GroupMonitor monitor = ready_pair();
  monitor.left(0, Error{ErrorCode::kCorrupt, "rank 1: a frame has epoch 3 instead of 4"}, kStart);
  const auto verdict = monitor.check(kStart);
  REQUIRE(verdict);
  CHECK_FALSE(verdict->must_go);
  CHECK(verdict->error.code == ErrorCode::kPeerLost);
  CHECK(verdict->error.message ==
        "rank 0 (pid 101) gave up: rank 1: a frame has epoch 3 instead of 4");

  GroupMonitor other = ready_pair();
  other.left(0, Error{ErrorCode::kTimeout, "rank 1: no message within 10 ms"}, kStart);
  CHECK_FALSE(other.check(kStart + 300ms));
  other.ended(0, "exited with status 3", kStart + 300ms);
  REQUIRE(other.check(kStart + 300ms));
  CHECK(other.check(kStart + 300ms)->must_go);

  GroupMonitor last = ready_pair();
  last.left(1, Error{ErrorCode::kTimeout, "rank 0: no message within 10 ms"}, kStart);
  REQUIRE(last.check(kStart + 301ms));
  CHECK_FALSE(last.check(kStart + 301ms)->must_go);
}

TEST_CASE("a rank that cannot load is reported with its own reason, and the first cause counts") {
  GroupMonitor monitor({{101}, {102}}, {}, kStart);
  monitor.fatal(1, Error{ErrorCode::kCorrupt, "model.safetensors is cut off"}, kStart);
  monitor.ended(0, "exited with status 1", kStart);
  const auto verdict = monitor.check(kStart);
  REQUIRE(verdict);
  CHECK(verdict->rank == 1);
  CHECK(verdict->error.code == ErrorCode::kCorrupt);
  CHECK(verdict->error.message == "model.safetensors is cut off");
}

TEST_CASE("a ready rank's own failure is named with its rank") {
  GroupMonitor monitor = ready_pair();
  monitor.fatal(1, Error{ErrorCode::kInternal, "the device is gone"}, kStart);
  const auto verdict = monitor.check(kStart);
  REQUIRE(verdict);
  CHECK(verdict->error.code == ErrorCode::kPeerLost);
  CHECK(verdict->error.message == "rank 1 (pid 102) failed: the device is gone");
}
