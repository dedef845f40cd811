// What a process holds is the same after any number of loads, losses and unloads.
#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "node/group_fixture.h"
#include "node/local_group.h"

using namespace lockstep;

namespace {

// Of this process, from /proc.
struct Holdings {
  int descriptors = 0;
  int threads = 0;
  int children = 0;
  int64_t resident_kib = 0;
};

int count_entries(const std::string& folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

Holdings holdings() {
  Holdings held;
  held.descriptors = count_entries("/proc/self/fd");
  held.threads = count_entries("/proc/self/task");
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (std::string pid; children >> pid;) ++held.children;
  }
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> held.resident_kib;
  }
  return held;
}

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

void check_unchanged(int rounds) {
  const TemporaryModel model;
  load_and_unload(model, 6);  // what is made once: the allocator's arenas, libraries
  const Holdings before = holdings();
  load_and_unload(model, rounds);
  const Holdings after = holdings();
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  CHECK(after.children == 0);
  MESSAGE("resident: " << before.resident_kib << " KiB before, " << after.resident_kib
                       << " KiB after " << rounds << " rounds");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(after.resident_kib < before.resident_kib + 1024);
#endif
}

}  // namespace

TEST_CASE("20 loads and unloads leave descriptors, threads, children and memory as they were") {
  check_unchanged(20);
}

// Run by bench/load_unload.sh: --no-skip --test-case="200 *".
TEST_CASE("200 loads and unloads leave descriptors, threads, children and memory as they were" *
          doctest::skip()) {
  check_unchanged(200);
}
