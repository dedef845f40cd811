// A process holds the same resources after any number of loads, losses and unloads.
#include <doctest/doctest.h>
#include <signal.h>

#include <memory>
#include <string>

#include "node/group/group_supervisor.h"
#include "node/group_fixture.h"
#include "support/holdings.h"

using namespace lockstep;

namespace {

void load_and_unload(const TemporaryModel& model, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const int ranks = 1 + round % 3;
    const auto group = start_echo(echo_options(model, ranks, round % 2 == 0 ? "shm" : "tcp"));
    check_serves(*group);
    if (round % 4 == 3) {
      const int64_t pid = group->status().ranks.back().pid;
      REQUIRE(::kill(static_cast<pid_t>(pid), SIGKILL) == 0);
      Client client;
      client.start(*group, prompt({1}, 5));
      // Lost with the old group or served by the new one, depending on timing.
      [[maybe_unused]] const auto outcome = client.wait_end();
    }
  }
}

}  // namespace

TEST_CASE("after 100 epochs the surviving processes hold the same resources") {
  const TemporaryModel model;
  for (const char* link : {"shm", "tcp"}) {
    const auto group = start_echo(echo_options(model, 3, link));
    const auto run_epochs = [&](int count) {
      for (int i = 0; i < count; ++i) {
        Client client;
        client.start(*group, prompt({kGiveUpToken, i % 3}, 5));
        CHECK_FALSE(client.wait_end().ok());
        check_serves(*group);
      }
    };
    run_epochs(5);
    const Holdings node = holdings();
    const std::vector<RankStatus> ranks = group->status().ranks;
    std::vector<Holdings> workers;
    for (const RankStatus& rank : ranks) workers.push_back(holdings_of(rank.pid));
    run_epochs(50);
    check_unchanged(node, holdings(), 3);
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      CHECK(group->status().ranks[rank].pid == ranks[rank].pid);
      CAPTURE(link);
      CAPTURE(rank);
      check_unchanged(workers[rank], holdings_of(ranks[rank].pid));
    }
    CHECK(group->status().epoch == 56);
  }
}

TEST_CASE(
    "loads, losses and unloads leave descriptors, threads, children and memory as they were") {
  const TemporaryModel model;
  load_and_unload(model, 6);  // made once: the allocator's arenas, libraries
  const Holdings before = holdings();
  load_and_unload(model, 100);
  check_unchanged(before, holdings());
}
