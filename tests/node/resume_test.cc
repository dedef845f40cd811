// Requests that outlive the group they ran on: the client sees a pause and nothing else.
#include <doctest/doctest.h>
#include <signal.h>

#include <numeric>
#include <string>
#include <vector>

#include "cluster/cluster_fixture.h"
#include "node/group/group_supervisor.h"
#include "node/group_fixture.h"

using namespace lockstep;

namespace {

GroupSupervisorOptions lasting_options(const TemporaryModel& model, int ranks, const char* link) {
  GroupSupervisorOptions options = echo_options(model, ranks, link);
  options.losses_max = 2;
  return options;
}

std::vector<int32_t> numbers(int32_t first, size_t count) {
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

void kill_rank(const GroupSupervisor& group, size_t rank) {
  REQUIRE(::kill(static_cast<pid_t>(group.status().ranks[rank].pid), SIGKILL) == 0);
}

}  // namespace

TEST_CASE("streams continue after a rank is lost, without lost or repeated tokens") {
  const TemporaryModel model;
  for (const char* link : {"shm", "tcp"}) {
    const auto group = start_echo(lasting_options(model, 2, link));
    constexpr size_t kTokens = 5'000;
    for (size_t rank : {0u, 1u}) {
      CAPTURE(link);
      CAPTURE(rank);
      Client first, second;
      first.start(*group, prompt({kHeldToken, 1}, kTokens));
      second.start(*group, prompt({kHeldToken, 500'000}, kTokens));
      second.wait_tokens(kHeldTokens);
      kill_rank(*group, rank);
      CHECK(first.wait_end().value() == FinishReason::kLength);
      CHECK(second.wait_end().value() == FinishReason::kLength);
      CHECK(first.tokens() == numbers(2, kTokens));
      CHECK(second.tokens() == numbers(500'001, kTokens));
      for (const Client* client : {&first, &second}) {
        REQUIRE(client->pauses().size() == 1);
        CHECK(client->pauses()[0].find("rank " + std::to_string(rank)) != std::string::npos);
        REQUIRE(client->recomputed().size() == 1);
        CHECK(client->recomputed()[0] == 0);  // the worker claims to have cached all of it
      }
    }
    CHECK(group->status().restarts == 2);
    CHECK(group->status().running == 0);
  }
}

TEST_CASE("a stream ends at its stop id even after a loss") {
  const TemporaryModel model;
  const auto group = start_echo(lasting_options(model, 2, "shm"));
  GenerateRequest request = prompt({kHeldToken, 1}, 1'000'000);
  request.stop_ids = {5'002};
  Client client;
  client.start(*group, request);
  client.wait_tokens(kHeldTokens);
  kill_rank(*group, 1);
  CHECK(client.wait_end().value() == FinishReason::kStop);
  CHECK(client.tokens() == numbers(2, 5'000));
}

TEST_CASE("a request that breaks every group it runs on fails after the maximum of losses") {
  const TemporaryModel model;
  const auto group = start_echo(lasting_options(model, 2, "shm"));
  Client client;
  client.start(*group, prompt({kAbortToken, 1}, 10));
  const auto outcome = client.wait_end();
  CHECK(outcome.error().code == ErrorCode::kPeerLost);
  check_serves(*group);
  CHECK(group->status().restarts == 3);
}

TEST_CASE("a request that waits to be resumed can be cancelled") {
  const TemporaryModel model;
  GroupSupervisorOptions options = lasting_options(model, 2, "shm");
  // A copy that is removed, so that no other group is formed.
  const std::filesystem::path program = model.path() / "worker";
  std::filesystem::copy_file(options.worker_program, program);
  options.worker_program = program;
  options.failures_max = 1'000'000;
  const auto group = start_echo(options);
  Client client;
  const uint64_t id = client.start(*group, prompt({kHeldToken, 1}, 100));
  client.wait_tokens(kHeldTokens);
  std::filesystem::remove(program);
  kill_rank(*group, 1);
  REQUIRE(comes_true([&] { return group->status().state == ModelStatus::State::kRestarting; }));
  CHECK(group->status().running == 1);
  group->cancel(id);
  CHECK(client.wait_end().error().code == ErrorCode::kCancelled);
  CHECK(group->status().running == 0);
}
