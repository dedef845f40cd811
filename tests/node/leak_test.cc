// What a process holds is the same after any number of loads, losses and unloads.
#include <doctest/doctest.h>
#include <signal.h>

#include <memory>
#include <string>

#include "node/group_fixture.h"
#include "node/local_group.h"
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
      // Lost with the old group or served by the new one, by who was faster.
      [[maybe_unused]] const auto outcome = client.wait_end();
    }
  }
}

}  // namespace

TEST_CASE(
    "loads, losses and unloads leave descriptors, threads, children and memory as they were") {
  const TemporaryModel model;
  load_and_unload(model, 6);  // what is made once: the allocator's arenas, libraries
  const Holdings before = holdings();
  load_and_unload(model, 100);
  check_unchanged(before, holdings());
}
