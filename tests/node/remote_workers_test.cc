// Ranks on other nodes: several nodes in this process, over loopback, each with a loop, peers and a
// host.
#include "node/worker/remote_workers.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/cluster_fixture.h"
#include "node/group_fixture.h"
#include "node/worker/worker_host.h"
#include "node/worker/worker_stream.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

// Waiting this long would be a hang.
constexpr std::chrono::milliseconds kForever = 1h;

WorkerCommand test_command() {
  return {std::string(LOCKSTEP_BINARY_DIR) + "/node_test_worker", {}};
}

// A node that hosts ranks of other nodes' groups.
class HostNode {
 public:
  explicit HostNode(const Identity& identity, const Peers::Options& options)
      : node_(identity, options, *this) {}
  ~HostNode() { leave(); }
  HostNode(const HostNode&) = delete;
  HostNode& operator=(const HostNode&) = delete;

  // Simulates a machine that is lost at once, with its processes.
  void leave() {
    node_.peers.reset();
    if (node_.loop) node_.loop->must_run([this] { host_.reset(); });
    node_.loop.reset();
  }

  Peers& peers() { return *node_.peers; }
  EventLoop& loop() { return *node_.loop; }
  NodeId id() const { return node_.identity.id(); }
  NetAddress address() const { return {"127.0.0.1", node_.peers->port()}; }

  Status allow(const HostedPart& part) {
    Status allowed = Ok{};
    loop().must_run([&] { allowed = host_->allow(part); });
    return allowed;
  }
  size_t process_count() {
    size_t count = 0;
    loop().must_run([&] { count = host_->process_count(); });
    return count;
  }
  // Returns whether all processes ended in time.
  bool forbid(const HostedPart& part) {
    const auto is_done = std::make_shared<std::atomic<bool>>(false);
    loop().must_run(
        [&] { host_->forbid(part.model, part.epoch, [is_done] { is_done->store(true); }); });
    return comes_true([&] { return is_done->load(); });
  }

 private:
  struct Parts {
    Parts(const Identity& own, const Peers::Options& options, HostNode& of)
        : identity(own), loop(EventLoop::start()) {
      of.host_ = std::make_unique<WorkerHost>(*loop, test_command());
      Peers::Events events;
      events.on_stream = [&of](const NodeId& from, const Channel& channel,
                               FrameConnection connection) {
        of.host_->on_stream(from, channel, std::move(connection));
      };
      auto started = Peers::start(*loop, identity, options, std::move(events));
      REQUIRE_MESSAGE(started.ok(), (started.ok() ? "" : started.error().message));
      peers = std::move(started.value());
    }
    Identity identity;
    std::unique_ptr<EventLoop> loop;
    std::unique_ptr<Peers> peers;
  };

  std::unique_ptr<WorkerHost> host_;
  Parts node_;
};

bool are_connected(HostNode& a, HostNode& b) {
  const auto sees = [](HostNode& one, HostNode& other) {
    const auto report = one.peers().report();
    return std::any_of(report.connected.begin(), report.connected.end(),
                       [&](const Peer& peer) { return peer.id == other.id(); });
  };
  return comes_true([&] { return sees(a, b) && sees(b, a); });
}

// Node "a" leads a group whose last rank is on node "b".
struct LeaderAndHost {
  explicit LeaderAndHost(int own_ranks = 1)
      : a(member_identity(folder, "a", key), local_options()) {
    b = std::make_unique<HostNode>(member_identity(folder, "b", key), local_options({a.address()}));
    REQUIRE(are_connected(a, *b));
    for (int rank = 0; rank < own_ranks; ++rank) ranks.push_back({a.id(), ""});
    ranks.push_back({b->id(), "studio-2"});
    epoch.counter = 7;
    epoch.coordinator = a.id();
  }

  HostedPart part_of_b() const {
    HostedPart part{
        .model = "echo", .epoch = epoch, .leader = ranks[0].node, .files = {.model = model.path()}};
    part.hosts.hosts.assign(ranks.size(), "127.0.0.1");
    part.hosts.hosts.back() = "0.0.0.0";
    part.hosts.ranks = {static_cast<int>(ranks.size()) - 1};
    return part;
  }
  std::shared_ptr<WorkerPlaces> places() {
    ClusterPlacesOptions options{.own = a.id(), .model = "echo", .epoch = epoch, .ranks = ranks};
    options.files.model = model.path();
    options.hosts.hosts.assign(ranks.size(), "::");
    options.hosts.hosts.back() = "127.0.0.1";
    for (size_t rank = 0; rank + 1 < ranks.size(); ++rank) {
      options.hosts.ranks.push_back(static_cast<int>(rank));
    }
    options.command = test_command();
    options.answer_max = answer_max;
    return cluster_worker_places(a.loop(), a.peers(), std::move(options));
  }
  GroupSupervisorOptions group_options() {
    GroupSupervisorOptions options = echo_options(model, static_cast<int>(ranks.size()), "tcp");
    options.spec.threads = 0;
    options.losses_max = 3;
    options.places = places();
    return options;
  }

  std::chrono::milliseconds answer_max = ClusterPlacesOptions().answer_max;
  TemporaryModel model;
  TemporaryFolder folder;
  ClusterKey key = new_cluster();
  HostNode a;
  std::unique_ptr<HostNode> b;
  std::vector<RankPlace> ranks;
  PlacementEpoch epoch;
};

bool exists(int64_t pid) {
  return ::kill(static_cast<pid_t>(pid), 0) == 0;
}

// The tokens of rank 0 of a group in one process.
std::vector<int32_t> tokens_of_one(const GenerateRequest& request) {
  const TemporaryModel model;
  const auto group = start_echo(echo_options(model, 1));
  Client client;
  client.start(*group, request);
  CHECK(client.wait_end().ok());
  return client.tokens();
}

}  // namespace

TEST_CASE("remote workers: a rank on another node gives the same tokens as one process") {
  for (const int own_ranks : {1, 2}) {
    LeaderAndHost nodes(own_ranks);
    REQUIRE(nodes.b->allow(nodes.part_of_b()).ok());
    const auto group = start_echo(nodes.group_options());
    const ModelStatus status = group->status();
    REQUIRE(status.ranks.size() == nodes.ranks.size());
    CHECK(status.ranks.front().node.empty());
    CHECK(status.ranks.back().node == "studio-2");
    CHECK(exists(status.ranks.back().pid));
    CHECK(nodes.b->process_count() == 1);
    Client client;
    client.start(*group, prompt({100}, 500));
    CHECK(client.wait_end().ok());
    CHECK(client.tokens() == tokens_of_one(prompt({100}, 500)));
    group->stop();
    CHECK(comes_true([&] { return nodes.b->process_count() == 0; }));
    for (const RankStatus& rank : status.ranks) CHECK_FALSE(exists(rank.pid));
  }
}

TEST_CASE(
    "remote workers: a killed process of another node is named and replaced, and the text "
    "continues") {
  LeaderAndHost nodes;
  REQUIRE(nodes.b->allow(nodes.part_of_b()).ok());
  const auto group = start_echo(nodes.group_options());
  const ModelStatus before = group->status();
  Client client;
  client.start(*group, prompt({100}, 20'000));
  client.wait_tokens(10);
  REQUIRE(::kill(static_cast<pid_t>(before.ranks[1].pid), SIGKILL) == 0);
  CHECK(client.wait_end().ok());
  CHECK(client.tokens() == tokens_of_one(prompt({100}, 20'000)));
  const ModelStatus after = group->status();
  CHECK(after.ranks[0].pid == before.ranks[0].pid);
  CHECK(after.ranks[1].pid != before.ranks[1].pid);
  CHECK(after.last_error == "rank 1 on studio-2 (pid " + std::to_string(before.ranks[1].pid) +
                                ") was killed by signal 9 (SIGKILL)");
}

TEST_CASE("remote workers: a lost node is a loss at once, and stopping does not wait for it") {
  LeaderAndHost nodes;
  nodes.answer_max = kForever;
  REQUIRE(nodes.b->allow(nodes.part_of_b()).ok());
  GroupSupervisorOptions options = nodes.group_options();
  // Losses are detected only by the end of the connection, never by silence.
  options.timeouts = {kForever, kForever, kForever};
  std::mutex mutex;
  std::vector<std::string> reasons;
  options.on_state = [&](ModelStatus::State state, const std::string& reason) {
    const std::lock_guard lock(mutex);
    if (state == ModelStatus::State::kRestarting) reasons.push_back(reason);
  };
  const auto group = start_echo(options);
  const ModelStatus before = group->status();
  const auto left = Clock::now();
  nodes.b->leave();
  CHECK(comes_true([&] { return group->status().state == ModelStatus::State::kRestarting; }));
  MESSAGE(std::chrono::duration<double>(Clock::now() - left).count(), " s");
  {
    const std::lock_guard lock(mutex);
    REQUIRE(reasons.size() > 0);
    MESSAGE(reasons[0]);
    CHECK(reasons[0].starts_with("rank 1 on studio-2 (pid "));
    CHECK(reasons[0].find("cannot be reached") != std::string::npos);
  }
  CHECK(comes_true([&] {
    return group->status().last_error.find("rank 1 cannot be started on studio-2: node ") == 0;
  }));
  const auto stopped = Clock::now();
  group->stop();
  CHECK(Clock::now() - stopped < kTestWait);
  for (const RankStatus& rank : before.ranks) CHECK_FALSE(exists(rank.pid));
}

TEST_CASE(
    "remote workers: a node that is prepared late is asked again, and loading can be stopped") {
  LeaderAndHost nodes;
  GroupSupervisorOptions options = nodes.group_options();
  std::mutex mutex;
  std::vector<ModelStatus::State> states;
  options.on_state = [&](ModelStatus::State state, const std::string&) {
    const std::lock_guard lock(mutex);
    states.push_back(state);
  };
  auto opened = GroupSupervisor::open(options);
  REQUIRE(opened.ok());
  const std::unique_ptr<GroupSupervisor> group = std::move(opened.value());
  CHECK(comes_true([&] {
    return group->status().last_error ==
           "rank 1 cannot be started on studio-2: it is not prepared for ranks of model echo";
  }));
  CHECK(group->status().state == ModelStatus::State::kLoading);
  REQUIRE(nodes.b->allow(nodes.part_of_b()).ok());
  CHECK(comes_true([&] { return group->status().state == ModelStatus::State::kReady; }));
  check_serves(*group);
  group->stop();
  CHECK(states == std::vector{ModelStatus::State::kReady, ModelStatus::State::kStopped});

  nodes.b->forbid(nodes.part_of_b());
  GroupSupervisorOptions waiting = nodes.group_options();
  waiting.prepare_timeout = kForever;
  auto second = GroupSupervisor::open(waiting);
  REQUIRE(second.ok());
  const auto begun = Clock::now();
  second.value()->stop();
  CHECK(Clock::now() - begun < kTestWait);
  CHECK(second.value()->status().state == ModelStatus::State::kStopped);
}

TEST_CASE("worker host: refuses nodes that do not lead, ranks of other nodes, and unknown parts") {
  LeaderAndHost nodes;
  HostNode c(member_identity(nodes.folder, "c", nodes.key), local_options({nodes.b->address()}));
  REQUIRE(are_connected(c, *nodes.b));
  REQUIRE(nodes.b->allow(nodes.part_of_b()).ok());
  const auto answer = [&](HostNode& from, int own_rank, int rank) {
    ClusterPlacesOptions options{.own = from.id(), .model = "echo", .epoch = nodes.epoch};
    for (int i = 0; i < 2; ++i)
      options.ranks.push_back({i == own_rank ? from.id() : nodes.b->id()});
    options.hosts.hosts.assign(2, "127.0.0.1");
    const auto started =
        cluster_worker_places(from.loop(), from.peers(), std::move(options))->start(rank);
    return started.ok() ? std::string("started") : started.error().message;
  };
  CHECK(answer(c, 0, 1).ends_with("does not lead the group of model echo"));
  CHECK(answer(nodes.a, 1, 0).ends_with("rank 0 of model echo belongs to another node"));
  CHECK(answer(nodes.a, 0, 1) == "started");
  CHECK(comes_true([&] { return nodes.b->process_count() == 0; }));
  nodes.epoch.counter = 8;
  CHECK(answer(nodes.a, 0, 1).ends_with("it is not prepared for ranks of model echo"));
}

TEST_CASE("worker host: a forbidden part has no processes once that is reported") {
  LeaderAndHost nodes;
  REQUIRE(nodes.b->allow(nodes.part_of_b()).ok());
  GroupSupervisorOptions options = nodes.group_options();
  options.failures_max = 2;
  const auto group = start_echo(options);
  const int64_t pid = group->status().ranks[1].pid;
  REQUIRE(::kill(static_cast<pid_t>(pid), SIGSTOP) == 0);
  CHECK(nodes.b->forbid(nodes.part_of_b()));
  CHECK_FALSE(exists(pid));
  CHECK(nodes.b->process_count() == 0);
  CHECK(nodes.b->forbid(nodes.part_of_b()));  // again
  CHECK(comes_true([&] { return group->status().state == ModelStatus::State::kFailed; }));
  CHECK(group->status().last_error ==
        "rank 1 cannot be started on studio-2: it is not prepared for ranks of model echo");
}

TEST_CASE("remote workers: memory is not shared between nodes") {
  LeaderAndHost nodes;
  GroupSupervisorOptions options = nodes.group_options();
  options.spec.link.kind = LinkKind::kShm;
  const auto opened = GroupSupervisor::open(options);
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().message.starts_with("rank 1 on studio-2 does not share memory"));
}

TEST_CASE("worker host: rank numbers and hosts must match") {
  LeaderAndHost nodes;
  HostedPart part = nodes.part_of_b();
  part.hosts.ranks = {2};
  CHECK(nodes.b->allow(part).error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("worker stream: requests and answers of other nodes") {
  const auto channel = worker_channel({"echo", PlacementEpoch{3, NodeId(), 9}, 2});
  REQUIRE(channel.ok());
  const auto purpose = parse_worker_purpose(channel.value().purpose);
  REQUIRE(purpose.ok());
  CHECK(purpose.value().model == "echo");
  CHECK(purpose.value().epoch == PlacementEpoch{3, NodeId(), 9});
  CHECK(purpose.value().rank == 2);
  CHECK(decode_worker_answer(encode_worker_started(77)).value() == 77);
  const auto refused = decode_worker_answer(encode_worker_refusal({ErrorCode::kPeerLost, "later"}));
  CHECK(refused.error().code == ErrorCode::kPeerLost);
  CHECK(refused.error().message == "later");
  for (const char* text : {"", "{}", "[]", "{\"pid\":-1}", "{\"refused\":1}", "\xff"}) {
    CHECK_FALSE(decode_worker_answer(text).ok());
    CHECK_FALSE(parse_worker_purpose(text).ok());
  }
}
