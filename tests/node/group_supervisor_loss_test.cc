// Workers that die, stop or hang: detected within 2 s, named, and replaced.
#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "node/group/group_supervisor.h"
#include "node/group_fixture.h"
#include "support/text.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

constexpr auto kLossMax = 2s;
constexpr int kEndlessContext = 1'000'000'000;  // an echo produces 4096 tokens in no time

// Sends `signal` to a rank in the middle of a stream. The stream must end in time with an error
// that names the rank and contains `how`, and the next request must be served by a new group in
// which only the lost rank's process was replaced.
void lose_rank(GroupSupervisor& group, int rank, int signal, const std::string& how) {
  const std::vector<RankStatus> before = group.status().ranks;
  const int64_t pid = before[static_cast<size_t>(rank)].pid;
  Client client;
  client.start(group, prompt({1}, 1'000'000'000));
  client.wait_tokens(10);
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(::kill(static_cast<pid_t>(pid), signal) == 0);
  const auto outcome = client.wait_end();
  const auto took = client.ended_at() - begin;
  MESSAGE(
      outcome.error().message << " -- after "
                              << std::chrono::duration_cast<std::chrono::milliseconds>(took).count()
                              << " ms");
  CHECK(outcome.error().code == ErrorCode::kPeerLost);
  CHECK(contains(outcome.error().message,
                 "rank " + std::to_string(rank) + " (pid " + std::to_string(pid) + ") " + how));
  CHECK(took < kLossMax);

  check_serves(group);  // waits for the new group
  const ModelStatus after = group.status();
  CHECK(after.state == ModelStatus::State::kReady);
  CHECK(after.last_error == outcome.error().message);
  CHECK(::kill(static_cast<pid_t>(pid), 0) == -1);  // exited and reaped
  REQUIRE(after.ranks.size() == before.size());
  for (size_t other = 0; other < before.size(); ++other) {
    const bool is_same = after.ranks[other].pid == before[other].pid;
    CHECK(is_same == (static_cast<int>(other) != rank));
  }
}

}  // namespace

TEST_CASE("a killed worker ends the stream with its name and signal, and the next request works") {
  const TemporaryModel model;
  for (const char* link : {"shm", "tcp"}) {
    for (int ranks : {1, 2, 3}) {
      CAPTURE(link);
      CAPTURE(ranks);
      GroupSupervisorOptions options = echo_options(model, ranks, link);
      options.spec.context = kEndlessContext;
      const auto group = start_echo(options);
      for (int rank = 0; rank < ranks; ++rank) {
        lose_rank(*group, rank, SIGKILL, "was killed by signal 9 (SIGKILL)");
      }
      CHECK(group->status().restarts == ranks);
      CHECK(group->status().epoch == static_cast<uint64_t>(ranks) + 1);
    }
  }
}

TEST_CASE("a worker that is killed on request is replaced like one that dies") {
  const TemporaryModel model;
  GroupSupervisorOptions options = echo_options(model, 2, "shm");
  options.spec.context = kEndlessContext;
  const auto group = start_echo(options);
  CHECK(group->kill_worker(2).error().code == ErrorCode::kInvalidArgument);
  CHECK(group->kill_worker(-1).error().code == ErrorCode::kInvalidArgument);
  const std::vector<RankStatus> before = group->status().ranks;
  Client client;
  client.start(*group, prompt({1}, 1'000'000'000));
  client.wait_tokens(10);
  const auto killed = group->kill_worker(std::nullopt);
  REQUIRE(killed.ok());
  CHECK(killed.value().rank == 1);
  CHECK(killed.value().pid == before[1].pid);
  const auto outcome = client.wait_end();
  CHECK(contains(outcome.error().message, "was killed by signal 9 (SIGKILL)"));
  check_serves(*group);  // waits for the new group
  const std::vector<RankStatus> after = group->status().ranks;
  CHECK(after[0].pid == before[0].pid);
  CHECK(after[1].pid != before[1].pid);
  group->stop();
  CHECK(group->kill_worker(0).error().code == ErrorCode::kPeerLost);
}

TEST_CASE("a stopped worker is detected by its silence within 2 s") {
  const TemporaryModel model;
  for (const char* link : {"shm", "tcp"}) {
    GroupSupervisorOptions options = echo_options(model, 2, link);
    options.spec.context = kEndlessContext;
    const auto group = start_echo(options);
    for (int rank : {0, 1}) lose_rank(*group, rank, SIGSTOP, "has not answered for ");
  }
}

TEST_CASE("a worker that crashes is named with its reason") {
  const TemporaryModel model;
  const auto group = start_echo(echo_options(model, 2));
  const struct {
    int32_t token;
    const char* how;
  } kCases[] = {{kAbortToken, "was killed by signal 6 (SIGABRT)"},
                {kExitToken, "exited with status 7"},
                {kCrashToken, "was killed by signal 11 (SIGSEGV)"}};
  for (const auto& each : kCases) {
    for (int32_t rank : {0, 1}) {
      CAPTURE(each.how);
      Client client;
      client.start(*group, prompt({each.token, rank}, 10));
      const std::string message = client.wait_end().error().message;
      CHECK(contains(message, "rank " + std::to_string(rank) + " (pid "));
      CHECK(contains(message, each.how));
      check_serves(*group);
    }
  }
}

TEST_CASE("a rank that gives up ends the epoch but no process") {
  const TemporaryModel model;
  for (const char* link : {"shm", "tcp"}) {
    const auto group = start_echo(echo_options(model, 3, link));
    const std::vector<RankStatus> before = group->status().ranks;
    for (const int32_t token : {kGiveUpToken, kTireToken}) {
      for (const int32_t rank : {0, 1, 2}) {
        Client client;
        client.start(*group, prompt({token, rank}, 10));
        const auto outcome = client.wait_end();
        CHECK(outcome.error().code == ErrorCode::kPeerLost);
        CHECK(contains(outcome.error().message,
                       "rank " + std::to_string(rank) + " (pid " +
                           std::to_string(before[static_cast<size_t>(rank)].pid) +
                           ") gave up: rank 9: "));
        check_serves(*group);
      }
    }
    const ModelStatus after = group->status();
    CHECK(after.epoch == 7);
    for (size_t rank = 0; rank < 3; ++rank) CHECK(after.ranks[rank].pid == before[rank].pid);
  }
}

TEST_CASE("only a rank that gives up repeatedly is restarted") {
  const TemporaryModel model;
  GroupSupervisorOptions options = echo_options(model, 2);
  options.failures_max = 2;
  const auto group = start_echo(options);
  const std::vector<RankStatus> before = group->status().ranks;
  for (int failure = 0; failure < 3; ++failure) {
    Client client;
    client.start(*group, prompt({kGiveUpToken, 1}, 10));
    CHECK_FALSE(client.wait_end().ok());
  }
  check_serves(*group);
  const std::vector<RankStatus> after = group->status().ranks;
  CHECK(after[0].pid == before[0].pid);
  CHECK(after[1].pid != before[1].pid);
}

TEST_CASE("a rank that hangs but sends heartbeats is detected by its missing progress") {
  const TemporaryModel model;
  GroupSupervisorOptions options = echo_options(model, 3);
  options.timeouts.progress = 1000ms;
  const auto group = start_echo(options);
  for (int32_t rank : {0, 1, 2}) {
    Client client;
    client.start(*group, prompt({kHangToken, rank}, 10));
    const auto outcome = client.wait_end();
    MESSAGE(outcome.error().message);
    CHECK(contains(outcome.error().message, "rank " + std::to_string(rank) + " (pid "));
    CHECK(contains(outcome.error().message, "without progress (hung)"));
    check_serves(*group);
  }
}

TEST_CASE("a long but moving computation is not a hang") {
  const TemporaryModel model;
  GroupSupervisorOptions options = echo_options(model, 2);
  options.timeouts.progress = 2000ms;
  const auto group = start_echo(options);
  Client client;
  client.start(*group, prompt({kSlowToken, 1}, 600));  // at least 3 s
  CHECK(client.wait_end().ok());
  CHECK(group->status().restarts == 0);
}

TEST_CASE("a stall of the node's own thread is not blamed on a worker") {
  const TemporaryModel model;
  GroupSupervisorOptions options = echo_options(model, 2);
  options.timeouts.heartbeat = 1000ms;
  options.timeouts.progress = 1200ms;
  const auto group = start_echo(options);
  Client client;
  const EventSink events = [told = client.events()](RequestEvent event) {
    if (!event.as<RequestEvent::Token>()) return told(std::move(event));
    constexpr auto kStalled = 1500ms;
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < kStalled) {
      ::poll(nullptr, 0, kStalled.count());
    }
  };
  REQUIRE(group->generate(prompt({1}, 2), events).ok());
  CHECK(client.wait_end().ok());
  check_serves(*group);
  CHECK(group->status().restarts == 0);
}

TEST_CASE("a model that cannot come back fails its requests at their deadline, then permanently") {
  const TemporaryModel model;
  GroupSupervisorOptions options = echo_options(model, 1);
  const std::string program = options.worker_program;
  // A copy that can be removed.
  options.worker_program = model.path() / "worker";
  std::filesystem::copy_file(program, options.worker_program);
  options.restart_wait = 300ms;
  options.failures_max = 3;
  const auto group = start_echo(options);
  std::filesystem::remove(options.worker_program);
  REQUIRE(::kill(static_cast<pid_t>(group->status().ranks[0].pid), SIGKILL) == 0);
  const auto deadline = std::chrono::steady_clock::now() + kTestWait;
  std::string held_message;
  while (group->status().state != ModelStatus::State::kFailed) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    Client client;
    if (!group->generate(prompt({1}, 1'000'000), client.events()).ok()) continue;
    const auto outcome = client.wait_end();
    CHECK(outcome.error().code == ErrorCode::kPeerLost);
    if (contains(outcome.error().message, "restarting")) held_message = outcome.error().message;
  }
  CHECK(contains(held_message, "the model echo is restarting, try again ("));
  CHECK(contains(group->status().last_error, "cannot start the program"));
  CHECK(group->generate(prompt({1}, 1), {}).error().code == ErrorCode::kPeerLost);
}

TEST_CASE("when the node is killed its workers vanish") {
  const TemporaryModel model;
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  const pid_t node = ::fork();
  if (node == 0) {
    // A separate node: reports its workers' pids and waits to be killed.
    auto group = GroupSupervisor::start(echo_options(model, 2));
    if (!group.ok()) ::_exit(1);
    for (const RankStatus& rank : group.value()->status().ranks) {
      if (::write(fds[1], &rank.pid, sizeof(rank.pid)) != sizeof(rank.pid)) ::_exit(1);
    }
    while (true) ::pause();
  }
  REQUIRE(node > 0);
  int64_t pids[2] = {};
  REQUIRE(::read(fds[0], &pids[0], sizeof(int64_t)) == sizeof(int64_t));
  REQUIRE(::read(fds[0], &pids[1], sizeof(int64_t)) == sizeof(int64_t));
  std::vector<pollfd> workers;  // readable once the process has ended
  for (int64_t pid : pids) {
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
    REQUIRE(fd >= 0);
    workers.push_back({fd, POLLIN, 0});
  }
  CHECK(::poll(workers.data(), workers.size(), 0) == 0);
  ::kill(node, SIGKILL);
  int status = 0;
  ::waitpid(node, &status, 0);
  for (pollfd& worker : workers) {
    CHECK(::poll(&worker, 1, std::chrono::milliseconds(kTestWait).count()) == 1);
    ::close(worker.fd);
  }
  ::close(fds[0]);
  ::close(fds[1]);
}
