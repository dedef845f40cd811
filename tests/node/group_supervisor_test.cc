#include "node/group/group_supervisor.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "node/group_fixture.h"
#include "support/comes_true.h"
#include "support/pair_times.h"

using namespace lockstep;
using namespace std::chrono_literals;

TEST_CASE("any number of ranks serve over every link") {
  const TemporaryModel model;
  for (const char* link : {"shm", "tcp"}) {
    for (int ranks : {1, 2, 3, 4}) {
      CAPTURE(link);
      CAPTURE(ranks);
      const auto group = start_echo(echo_options(model, ranks, link));
      const ModelStatus status = group->status();
      CHECK(status.state == ModelStatus::State::kReady);
      CHECK(status.name == "echo");
      CHECK(status.link == link);
      CHECK(status.context == 4096);
      REQUIRE(status.ranks.size() == static_cast<size_t>(ranks));
      for (const RankStatus& rank : status.ranks) {
        CHECK(rank.pid > 0);
        CHECK(rank.weight_bytes == 1000 + static_cast<uint64_t>(rank.rank));
      }
      CHECK(status.links.size() == static_cast<size_t>(ranks * (ranks - 1) / 2));
      for (const PairStatus& pair : status.links) {
        CHECK(is_measured(pair.times));
        CHECK(link_path_name(pair.use.path) == link);
        CHECK(pair.use.reason == "");
      }
      check_serves(*group);
      CHECK(group->status().running == 0);
    }
  }
}

TEST_CASE("the status says what links carry: bytes while there is work, nothing when it is over") {
  const TemporaryModel model;
  const auto group = start_echo(echo_options(model, 2));
  const auto bytes_s = [&] { return group->status().links.at(0).bytes_s; };
  CHECK(comes_true([&] { return check_serves(*group), bytes_s() > 0; }));
  CHECK(comes_true([&] { return bytes_s() == 0; }));
}

TEST_CASE("a request's stop reason, its stop ids and its logits are passed on") {
  const TemporaryModel model;
  const auto group = start_echo(echo_options(model, 2));
  CHECK(group->stop_ids() == std::vector<int32_t>{2});
  CHECK_FALSE(group->tokenizer());

  Client stopped;
  GenerateRequest request = prompt({10, 20}, 100);
  request.stop_ids = {23};
  request.prompt_logits = true;
  stopped.start(*group, request);
  CHECK(stopped.wait_end().value() == FinishReason::kStop);
  CHECK(stopped.tokens() == std::vector<int32_t>{21, 22});
  CHECK(stopped.cached_tokens() == std::vector<int>{1});
  REQUIRE(stopped.rows().size() == 2);
  CHECK(stopped.rows()[1] == std::vector<float>(1000, 20.0f));

  Client only_fed;
  only_fed.start(*group, prompt({5}, 0));
  CHECK(only_fed.wait_end().value() == FinishReason::kLength);
  CHECK(only_fed.tokens().empty());
}

TEST_CASE("many requests run at once, and each gets its own tokens") {
  const TemporaryModel model;
  GroupSupervisorOptions options = echo_options(model, 2);
  options.queue_max = 1000;
  const auto group = start_echo(options);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<Client>());
    clients.back()->start(*group, prompt({1000 * i}, 20));
  }
  for (int i = 0; i < 200; ++i) {
    CHECK(clients[static_cast<size_t>(i)]->wait_end().ok());
    const std::vector<int32_t> tokens = clients[static_cast<size_t>(i)]->tokens();
    REQUIRE(tokens.size() == 20);
    CHECK(tokens.back() == 1000 * i + 20);
  }
}

TEST_CASE("a cancelled request ends with kCancelled, and the others continue") {
  const TemporaryModel model;
  const auto group = start_echo(echo_options(model, 2));
  Client cancelled, other;
  const uint64_t id = cancelled.start(*group, prompt({1}, 1'000'000));
  other.start(*group, prompt({500}, 200));
  cancelled.wait_tokens(5);
  group->cancel(id);
  CHECK(cancelled.wait_end().error().code == ErrorCode::kCancelled);
  CHECK(other.wait_end().ok());
  group->cancel(id);
  group->cancel(123'456);
  check_serves(*group);
}

TEST_CASE("a request that cannot be served is refused at once") {
  const TemporaryModel model;
  GroupSupervisorOptions options = echo_options(model, 1);
  options.spec.sequences_max = 1;
  options.queue_max = 1;
  options.spec.context = 8;
  const auto group = start_echo(options);
  CHECK(group->generate(prompt({}, 1), {}).error().code == ErrorCode::kInvalidArgument);
  CHECK(group->generate(prompt(std::vector<int32_t>(9, 1), 1), {}).error().message ==
        "the prompt has 9 tokens but the context holds 8");

  Client first, second;
  const uint64_t id = first.start(*group, prompt({kSlowToken, 0}, 1'000'000));
  second.start(*group, prompt({7}, 1));
  const auto third = group->generate(prompt({8}, 1), {});
  CHECK(third.error().code == ErrorCode::kExhausted);
  group->cancel(id);
  CHECK_FALSE(first.wait_end().ok());
  CHECK(second.wait_end().ok());
  check_serves(*group);
}

TEST_CASE("stop ends running requests and every worker") {
  const TemporaryModel model;
  const auto group = start_echo(echo_options(model, 2));
  const std::vector<RankStatus> ranks = group->status().ranks;
  Client client;
  client.start(*group, prompt({1}, 1'000'000'000));
  client.wait_tokens(3);
  group->stop();
  CHECK(client.wait_end().error().code == ErrorCode::kCancelled);
  CHECK(group->status().state == ModelStatus::State::kStopped);
  CHECK(group->generate(prompt({1}, 1), {}).error().code == ErrorCode::kPeerLost);
  for (const RankStatus& rank : ranks) {
    CHECK(::kill(static_cast<pid_t>(rank.pid), 0) == -1);  // reaped
  }
  group->stop();
}

TEST_CASE("a model that cannot be loaded fails with the worker's reason") {
  const TemporaryModel bad("bad_model");
  const auto corrupt = GroupSupervisor::start(echo_options(bad, 3));
  REQUIRE_FALSE(corrupt.ok());
  CHECK(corrupt.error().code == ErrorCode::kCorrupt);
  CHECK(corrupt.error().message == "model.safetensors is cut off after 12 bytes");

  const TemporaryModel huge("huge_model");
  const auto exhausted = GroupSupervisor::start(echo_options(huge, 2));
  REQUIRE_FALSE(exhausted.ok());
  CHECK(exhausted.error().code == ErrorCode::kExhausted);

  const TemporaryModel crashing("crashing_model");
  const auto crashed = GroupSupervisor::start(echo_options(crashing, 1));
  REQUIRE_FALSE(crashed.ok());
  CHECK(crashed.error().message.find("was killed by signal 6 (SIGABRT)") != std::string::npos);
}

TEST_CASE("invalid options are refused with a sentence") {
  const TemporaryModel model;
  const auto code_of = [&](auto change) {
    GroupSupervisorOptions options = echo_options(model, 2);
    change(options);
    const auto group = GroupSupervisor::start(options);
    REQUIRE_FALSE(group.ok());
    CHECK_FALSE(group.error().message.empty());
    return group.error().code;
  };
  using Options = GroupSupervisorOptions;
  CHECK(code_of([](Options& o) { o.spec.shares = {}; }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([](Options& o) { o.spec.shares = equal_shares(1'000'000); }) ==
        ErrorCode::kInvalidArgument);
  CHECK(code_of([](Options& o) { o.spec.shares = {1, -1}; }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([](Options& o) { o.spec.link.stages = 3; }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([](Options& o) { o.spec.model = "/nowhere"; }) == ErrorCode::kNotFound);
  CHECK(code_of([](Options& o) { o.worker_program = "/nowhere/x"; }) == ErrorCode::kNotFound);
  // A program that is not a worker: it exits silently.
  CHECK(code_of([](Options& o) { o.worker_program = "/bin/true"; }) == ErrorCode::kPeerLost);
}
