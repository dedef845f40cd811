// Ranks that are silent, lost, faulty or told to stop.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "collective/ranks.h"

using namespace lockstep;

namespace {

using Clock = std::chrono::steady_clock;

const LeafShares kHalves = make_shares({1, 1});

Group make_group(LocalLinks& links, int rank, Group::Options options) {
  options.rank = rank;
  options.links = std::move(links[static_cast<size_t>(rank)]);
  return Group(std::move(options));
}

Status reduce(Group& group, size_t count = 100) {
  const std::vector<float> own(count, 1.0f);
  std::vector<float> sum(count);
  return group.all_reduce(kHalves, own, sum);
}

}  // namespace

TEST_CASE("a silent rank is an error at the deadline that names it") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(2);
    Progress progress;
    Group group =
        make_group(links, 0, {.timeout = std::chrono::milliseconds{30}, .progress = &progress});
    const auto start = Clock::now();
    const Status status = reduce(group);
    REQUIRE(!status.ok());
    CHECK(status.error().code == ErrorCode::kTimeout);
    CHECK(status.error().message == "rank 1: no message within 30 ms");
    CHECK(Clock::now() - start >= std::chrono::milliseconds{30});
    CHECK(progress.ticks > 0);
    CHECK(progress.state == Progress::kComputing);
    CHECK(reduce(group).error().message == status.error().message);  // the group stays broken
  }
}

TEST_CASE("every exchange ends when the peer is silent, also when only sending is left") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    const auto fails = [&](int rank, auto exchange) {
      LocalLinks links = kind.open(2);
      Group group = make_group(links, rank, {.timeout = std::chrono::milliseconds{20}});
      const Status status = exchange(group);
      REQUIRE(!status.ok());
      CHECK(status.error().code == ErrorCode::kTimeout);
      CHECK(status.error().message.find(rank == 0 ? "rank 1: no " : "rank 0: no ") == 0);
    };
    std::vector<std::byte> big(100'000'000), other(100);
    const std::span<std::byte> parts[] = {big, other};
    const std::span<std::byte> swapped[] = {other, big};
    fails(1, [&](Group& group) { return group.broadcast(0, other, 100); });
    fails(0, [&](Group& group) { return group.broadcast(0, big, big.size()); });
    fails(0, [&](Group& group) { return group.all_gather(parts); });
    fails(0, [&](Group& group) { return group.gather(0, parts); });
    fails(1, [&](Group& group) { return group.gather(0, swapped); });
    fails(0, [&](Group& group) { return reduce(group, 20'000'000); });
  }
}

TEST_CASE("a rank that exits is lost to the others long before the deadline") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(3);
    Group first = make_group(links, 0, {.timeout = std::chrono::hours{1}});
    Group second = make_group(links, 1, {.timeout = std::chrono::hours{1}});
    { Group third = make_group(links, 2, {}); }
    std::vector<std::byte> data;
    const Status lost = first.broadcast(2, data, 100);
    CHECK(lost.error().code == ErrorCode::kPeerLost);
    CHECK(lost.error().message.find("rank 2") == 0);
    CHECK(second.wait_for(2).error().code == ErrorCode::kPeerLost);
  }
}

TEST_CASE("a rank whose process is killed is noticed by the others over TCP") {
  LocalLinks links = std::move(open_local_links({.kind = LinkKind::kTcp}, 2).value());
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    links[0][1].reset();
    for (;;) ::pause();
  }
  links[1][0].reset();
  Group group = make_group(links, 0, {.timeout = std::chrono::hours{1}});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(reduce(group).error().code == ErrorCode::kPeerLost);
}

TEST_CASE("a wait ends quickly when it is cancelled, in an exchange and when idle") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(3);
    std::atomic<bool> cancelled{false};
    Progress progress[2];  // ticks during a wait
    std::atomic<int> ended{0};
    const auto both_have_ended = [&] { return ended == 2; };  // a destroyed group is a lost peer
    Status reduced = Ok{}, idle = Ok{};
    const LeafShares shares = make_shares({1, 1, 1});
    std::thread first([&] {
      Group group = make_group(
          links, 0,
          {.timeout = std::chrono::hours{1}, .cancelled = &cancelled, .progress = &progress[0]});
      const std::vector<float> own(10);
      std::vector<float> sum(10);
      reduced = group.all_reduce(shares, own, sum);
      ++ended;
      CHECK(comes_true(both_have_ended));
    });
    std::thread second([&] {
      Group group = make_group(
          links, 1,
          {.timeout = std::chrono::hours{1}, .cancelled = &cancelled, .progress = &progress[1]});
      idle = group.wait_for(2);
      ++ended;
      CHECK(comes_true(both_have_ended));
    });
    CHECK(comes_true([&] { return progress[0].ticks > 0 && progress[1].ticks > 0; }));
    const auto start = Clock::now();
    cancelled = true;
    first.join();
    second.join();
    CHECK(Clock::now() - start < kTestTimeout);
    CHECK(reduced.error().code == ErrorCode::kCancelled);
    CHECK(idle.error().code == ErrorCode::kCancelled);
  }
}

TEST_CASE("an unexpected length from a rank is corrupt") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(2);
    Link& peer = *links[1][0];
    REQUIRE(peer.acquire(44).size() == 44);
    peer.post();
    peer.flush();
    Group group = make_group(links, 0, {.timeout = kTestTimeout});
    const Status status = reduce(group);
    REQUIRE(!status.ok());
    CHECK(status.error().code == ErrorCode::kCorrupt);
    CHECK(status.error().message.find("rank 1") == 0);
  }
}
