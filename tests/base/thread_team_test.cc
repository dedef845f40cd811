#include "base/threads/thread_team.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/machine/machine.h"
#include "base/threads/wait.h"

#include <pthread.h>
#include <sched.h>
#ifdef __linux__
#include <unistd.h>
#endif

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

void compute_for(std::chrono::microseconds duration) {
  const Clock::time_point end = Clock::now() + duration;
  while (Clock::now() < end) {
  }
}

#ifdef __linux__
bool is_asleep(const std::filesystem::path& task) {
  std::ifstream file(task / "stat");
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  const size_t end = stat.rfind(')');  // ends the thread's name; a space and the state follow
  return end != std::string::npos && stat.compare(end, 3, ") S") == 0;
}

// Waits until the idle threads of all teams have stopped spinning and sleep.
void wait_until_others_sleep() {
  const std::string own = std::to_string(::gettid());
  Wait wait(std::chrono::seconds{20});
  for (bool are_asleep = false; !are_asleep;) {
    REQUIRE(wait.pause("sleeping threads").ok());
    are_asleep = true;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      are_asleep = are_asleep && (task.path().filename() == own || is_asleep(task.path()));
    }
  }
}
#else
void wait_until_others_sleep() {
  compute_for(std::chrono::milliseconds(2));
}
#endif

// Runs chunks and checks that each index was handed out exactly once.
void check_chunks(ThreadTeam& team, int count, int grain) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  std::atomic<bool> is_sound{true};
  team.for_each_chunk(count, grain, [&](int begin, int end) {
    if (begin < 0 || end > count || end - begin > grain || begin >= end) is_sound = false;
    for (int i = begin; i < end; ++i) seen[static_cast<size_t>(i)].fetch_add(1);
  });
  REQUIRE(is_sound.load());
  for (const std::atomic<int>& times : seen) REQUIRE(times.load() == 1);
}

// The same for shrinking chunks, the first of which is an eighth of the work of two threads.
void check_shrinking_chunks(int count, int grain) {
  ThreadTeam team({.threads = 2});
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  std::atomic<int> largest{0}, smallest{count}, chunks{0};
  const auto body = [&](int begin, int end) {
    ++chunks;
    if (begin == 0) largest = end - begin;
    for (int least = smallest; end - begin < least && end < count;) {
      if (smallest.compare_exchange_weak(least, end - begin)) break;
    }
    for (int i = begin; i < end; ++i) seen[static_cast<size_t>(i)].fetch_add(1);
  };
  team.for_each_chunk(count, grain, ThreadTeam::Chunks::kShrinking, body, [] {});
  CHECK(largest == std::min(count, std::max(grain, count / 8)));
  CHECK(smallest >= std::min(grain, count));
  CHECK(chunks <= (count + grain - 1) / grain);
  for (const std::atomic<int>& times : seen) REQUIRE(times.load() == 1);
}

// body() in every thread of the team: a chunk for each, which waits until all have one.
template <class Body>
void run_in_every_thread(ThreadTeam& team, Body body) {
  std::atomic<int> here{0};
  std::atomic<bool> have_met{true};
  team.for_each_chunk(team.size(), 1, [&](int, int) {
    ++here;
    Wait wait(std::chrono::seconds{20});
    while (here < team.size() && have_met) {
      if (!wait.pause("other threads").ok()) have_met = false;
    }
    body();
  });
  REQUIRE(have_met.load());
}

void check_every_thread_runs(ThreadTeam& team) {
  std::atomic<int> runs{0};
  run_in_every_thread(team, [&] { ++runs; });
  REQUIRE(runs.load() == team.size());
}

std::atomic<bool> may_go_on{true};
std::atomic<bool> is_in_handler{false};

// Keeps a thread in a signal's handler, as if the scheduler did not let it run.
class HeldThread {
 public:
  explicit HeldThread(pthread_t thread) {
    may_go_on = false;
    std::signal(SIGUSR1, [](int) {
      is_in_handler = true;
      while (!may_go_on) ::sched_yield();
      is_in_handler = false;
    });
    REQUIRE(::pthread_kill(thread, SIGUSR1) == 0);
    Wait wait(std::chrono::seconds{20});
    while (!is_held()) REQUIRE(wait.pause("held thread").ok());
  }
  ~HeldThread() {
    may_go_on = true;
    while (is_held()) ::sched_yield();
    std::signal(SIGUSR1, SIG_DFL);
  }
  bool is_held() const { return is_in_handler; }
};

}  // namespace

TEST_CASE(
    "thread team: shrinking chunks cover all, the first ones large and none below the grain") {
  for (const int count : {1, 7, 8, 100, 10'000}) {
    for (const int grain : {1, 3, 200}) check_shrinking_chunks(count, grain);
  }
}

TEST_CASE(
    "a team hands out every index exactly once, whatever the size of the team and the chunks") {
  for (int threads : {1, 2, 3, 8}) {
    ThreadTeam team({.threads = threads});
    CHECK(team.size() == threads);
    for (int count : {0, 1, 2, 7, 64, 1000}) {
      for (int grain : {1, 3, 64, 5000}) check_chunks(team, count, grain);
    }
  }
}

TEST_CASE("each of many sections sees what the section before wrote") {
  for (int threads : {1, 2, 3}) {
    ThreadTeam team({.threads = threads});
    const auto size = static_cast<size_t>(threads);
    std::vector<long> sums(size, 0), last(size, 0);
    for (int round = 1; round <= 5000; ++round) {
      std::swap(sums, last);
      team.for_each_chunk(threads, 1, [&](int begin, int) {
        const auto own = static_cast<size_t>(begin);
        sums[own] = last[(own + 1) % size] + 1;  // perhaps another thread's, in the last round
      });
      for (const long sum : sums) REQUIRE(sum == round);
    }
  }
}

TEST_CASE("a team works after its threads have gone to sleep") {
  ThreadTeam team({.threads = 2});
  for (int round = 0; round < 20; ++round) {
    wait_until_others_sleep();
    check_every_thread_runs(team);
  }
}

TEST_CASE("no wake-up is lost while threads are falling asleep") {
  ThreadTeam team({.threads = 2});
  for (int round = 0; round < 3000; ++round) {
    compute_for(std::chrono::microseconds(50 + round % 40));
    check_every_thread_runs(team);
  }
}

TEST_CASE("the owner waits for a slow thread") {
  ThreadTeam team({.threads = 2});
  for (int round = 0; round < 10; ++round) {
    const std::thread::id owner = std::this_thread::get_id();
    bool is_done = false;
    run_in_every_thread(team, [&] {
      if (std::this_thread::get_id() == owner) return;
      compute_for(std::chrono::milliseconds(3));
      is_done = true;
    });
    REQUIRE(is_done);
  }
}

TEST_CASE("a section ends without a thread that is kept from running") {
  ThreadTeam team({.threads = 2});
  const pthread_t owner = ::pthread_self();
  pthread_t other{};
  run_in_every_thread(team, [&] {
    if (::pthread_equal(::pthread_self(), owner) == 0) other = ::pthread_self();
  });
  wait_until_others_sleep();
  const HeldThread held(other);
  for (int round = 0; round < 100; ++round) check_chunks(team, 1000, 7);
  CHECK(held.is_held());
}

TEST_CASE("a single chunk wakes nobody") {
  for (const int threads : {1, 2}) {
    ThreadTeam team({.threads = threads});
    check_chunks(team, 7, 7);
    CHECK(team.section_count() == 0);
    check_chunks(team, 8, 7);
    CHECK(team.section_count() == (threads > 1 ? 1 : 0));
  }
}

TEST_CASE("more threads than processors finish too") {
  ThreadTeam team({.threads = 4 * machine_core_count() + 1});
  const Clock::time_point begin = Clock::now();
  for (int round = 0; round < 300; ++round) check_every_thread_runs(team);
  check_chunks(team, 10000, 7);
  CHECK(Clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("a team that never ran ends, and so does one that sleeps") {
  for (int i = 0; i < 50; ++i) ThreadTeam team({.threads = 3});
  ThreadTeam team({.threads = 3});
  wait_until_others_sleep();
}

TEST_CASE("progress ticks once for each chunk") {
  Progress progress;
  ThreadTeam team({.threads = 2, .progress = &progress});
  team.for_each_chunk(100, 7, [](int, int) {});
  CHECK(progress.ticks.load() == 15);
  team.for_each_chunk(0, 7, [](int, int) {});
  CHECK(progress.ticks.load() == 15);
}

TEST_CASE("the caller's turn function runs after each of its chunks, in its own thread") {
  for (const int threads : {1, 3}) {
    ThreadTeam team({.threads = threads});
    const std::thread::id caller = std::this_thread::get_id();
    int chunks = 0, turns = 0;
    bool is_in_order = true;
    const auto body = [&](int, int) {
      if (std::this_thread::get_id() == caller) ++chunks;
    };
    const auto after_chunk = [&] {
      ++turns;
      is_in_order = is_in_order && std::this_thread::get_id() == caller && turns == chunks;
    };
    for (int round = 0; round < 50; ++round)
      team.for_each_chunk(100, 7, ThreadTeam::Chunks::kEqual, body, after_chunk);
    CHECK(is_in_order);
    CHECK(turns == chunks);
    CHECK((threads > 1 || turns == 50 * 15));
  }
}

TEST_CASE("pinned threads stay on their cores, modulo the machine's") {
  std::thread owner([] {  // a separate thread, since the owner is pinned too
    const int first_core = machine_core_count() - 1;
    const std::thread::id owner_id = std::this_thread::get_id();
    ThreadTeam team({.threads = 2, .first_core = first_core});
    for (int round = 0; round < 100; ++round) {
      std::vector<int> cores(2, -1);
      run_in_every_thread(team, [&] {
        const int thread = std::this_thread::get_id() == owner_id ? 0 : 1;
#ifdef __linux__
        cores[static_cast<size_t>(thread)] = sched_getcpu();
#else
        cores[static_cast<size_t>(thread)] = (first_core + thread) % machine_core_count();
#endif
      });
      for (int thread = 0; thread < 2; ++thread) {
        const int core = (first_core + thread) % machine_core_count();
        if (is_core_allowed(core)) REQUIRE(cores[static_cast<size_t>(thread)] == core);
      }
    }
  });
  owner.join();
}

TEST_CASE("the machine has at least one core for this process and no more than it has in total") {
  CHECK(available_core_count() >= 1);
  CHECK(available_core_count() <= machine_core_count());
  CHECK(!is_core_allowed(-1));
  CHECK(!is_core_allowed(1 << 20));
  CHECK(!pin_this_thread(1 << 20));
}

}  // namespace lockstep
