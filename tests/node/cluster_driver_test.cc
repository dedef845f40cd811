#include "node/cluster/cluster_driver.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "cluster/cluster_fixture.h"
#include "cluster/join/join_token.h"
#include "node/cluster/serving_placement.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

// Parts become ready and stop at once.
class FakeRunner final : public PartRunner {
 public:
  void start_part(const DesiredEntry& entry, const PlacementShare& part) override {
    {
      const std::lock_guard lock(mutex_);
      running_.insert(part.model);
    }
    CHECK(entry.name == part.model);
    tell(part.model, part.epoch, {PartEvent::Kind::kReady, ""});
  }
  void stop_part(const std::string& model, const PlacementEpoch& epoch) override {
    {
      const std::lock_guard lock(mutex_);
      running_.erase(model);
    }
    tell(model, epoch, {PartEvent::Kind::kStopped, ""});
  }
  bool is_running(const std::string& model) {
    const std::lock_guard lock(mutex_);
    return running_.contains(model);
  }
  // Called on the loop's thread, like everything except is_running().
  void set_driver(ClusterDriver* driver) {
    driver_ = driver;
    for (auto& call : std::exchange(early_, {})) call();
  }

 private:
  void tell(const std::string& model, const PlacementEpoch& epoch, const PartEvent& event) {
    if (driver_ != nullptr) return driver_->part_event(model, epoch, event);
    early_.push_back([this, model, epoch, event] { driver_->part_event(model, epoch, event); });
  }

  std::mutex mutex_;
  std::set<std::string> running_;
  ClusterDriver* driver_ = nullptr;
  std::deque<std::function<void()>> early_;
};

// Every node has 100 bytes; a model's path is its size.
struct Node {
  Node(const TemporaryFolder& folder, const std::string& name, const ClusterKey& key,
       std::vector<NetAddress> join = {}, std::chrono::milliseconds answer_timeout = 10s)
      : identity(member_identity(folder, name, key)),
        desired(folder.path() / name / "desired"),
        loop(EventLoop::start()) {
    ClusterDriver::Options options{.peers = local_options(std::move(join)),
                                   .folder = desired,
                                   .brain = {},
                                   .answer_timeout = answer_timeout};
    options.brain.program = "0.1.0-test";
    options.brain.budget_bytes = 100;
    options.brain.speed = 7;
    options.brain.membership.hold_ms = 100;
    options.brain.membership.hold_max_ms = 200;
    options.brain.coordinator.boot_ms = 300;
    options.brain.coordinator.settle_ms = 100;
    options.brain.persist_retry_ms = 200;
    const auto plan = [](const DesiredEntry& entry, size_t groups,
                         std::span<const NodeOffer> offers) {
      return split_groups(entry, groups, std::stoll(entry.path), offers);
    };
    auto started = ClusterDriver::start(*loop, identity, options, plan, runner,
                                        {.on_change = [this] { ++changes; }, .on_stream = {}});
    REQUIRE_MESSAGE(started.ok(), (started.ok() ? "" : started.error().message));
    driver = std::move(started.value());
    loop->must_run([this] { runner.set_driver(driver.get()); });
  }

  NetAddress address() const { return {"127.0.0.1", driver->peers().port()}; }
  Status load(const std::string& name, int bytes, int64_t idle_unload_s = 0, int64_t replicas = 1) {
    DesiredEntry entry;
    entry.promises.replicas = replicas;
    entry.promises.idle_unload_s = idle_unload_s;
    entry.name = name;
    entry.path = std::to_string(bytes);
    return driver->load(entry);
  }
  std::vector<ServingPlacement> all_serving(const std::string& model, size_t groups) {
    std::vector<ServingPlacement> found;
    loop->must_run([&] {
      const DesiredEntry* const entry = driver->brain().desired().find(model);
      if (entry == nullptr) return;
      found = serving_placements(driver->brain(), identity.id(), *entry, groups);
      // A placement for other wishes gives other answers, or is about to end.
      DesiredEntry other = *entry;
      other.promises.kv = "q8";
      CHECK(serving_placements(driver->brain(), identity.id(), other, groups).empty());
    });
    return found;
  }
  std::optional<ServingPlacement> serving(const std::string& model) {
    const auto all = all_serving(model, 1);
    return all.empty() ? std::nullopt : std::optional(all.front());
  }
  // The number of live nodes including this one, and the coordinator.
  std::pair<int, NodeId> view() const {
    std::pair<int, NodeId> view;
    for (const ClusterNodeReport& node : driver->report().nodes) {
      view.first += node.state == "alive" ? 1 : 0;
      if (node.is_coordinator) view.second = node.id;
    }
    return view;
  }

  Identity identity;
  std::filesystem::path desired;
  std::unique_ptr<EventLoop> loop;
  std::atomic<int> changes{0};  // counted on the loop's thread
  FakeRunner runner;
  std::unique_ptr<ClusterDriver> driver;
};

using Nodes = std::vector<std::unique_ptr<Node>>;

int64_t bytes_on_all(const RankPlan& plan) {
  int64_t bytes = 0;
  for (const RankPart& rank : plan.ranks) bytes += rank.bytes;
  return bytes;
}

bool all_agree(const Nodes& nodes) {
  return comes_true([&] {
    const auto first = nodes.front()->view();
    return first.first == static_cast<int>(nodes.size()) &&
           std::all_of(nodes.begin(), nodes.end(),
                       [&](const auto& node) { return node->view() == first; });
  });
}

Nodes start_nodes(const TemporaryFolder& folder, const ClusterKey& key) {
  Nodes nodes;
  for (const char* name : {"a", "b", "c"}) {
    std::vector<NetAddress> join;
    if (!nodes.empty()) join = {nodes.front()->address()};
    nodes.push_back(std::make_unique<Node>(folder, name, key, join));
  }
  REQUIRE(all_agree(nodes));
  return nodes;
}

// Waits until all nodes see the same placement of the model.
std::optional<ServingPlacement> wait_for_placement(const Nodes& nodes, const std::string& model) {
  std::optional<ServingPlacement> placement;
  comes_true([&] {
    placement = nodes.front()->serving(model);
    return placement && std::all_of(nodes.begin(), nodes.end(), [&](const auto& node) {
             return node->serving(model) == placement;
           });
  });
  return placement;
}

bool has_rank(const ServingPlacement& placement, const Node& node) {
  return bytes_on(placement.plan.ranks, node.identity.id()) > 0;
}

}  // namespace

TEST_CASE("cluster driver: a model loaded on one node serves on all, and stops when unloaded") {
  const TemporaryFolder folder;
  Nodes nodes = start_nodes(folder, new_cluster());
  const Status loaded = nodes[1]->load("m", 150);
  REQUIRE_MESSAGE(loaded.ok(), (loaded.ok() ? "" : loaded.error().message));
  const auto placement = wait_for_placement(nodes, "m");
  REQUIRE(placement.has_value());
  CHECK(placement->plan.ranks.size() == 2);
  CHECK(placement->plan.stages == 1);
  CHECK(placement->owner == placement->plan.ranks[0].node);
  for (const auto& node : nodes) {
    CHECK(node->runner.is_running("m") == has_rank(*placement, *node));
    CHECK(node->changes > 0);
  }
  REQUIRE(comes_true([&] {
    const auto models = nodes[2]->driver->report().models;
    return models.size() == 1 && models[0].phase == ModelPhase::kReady;
  }));
  const ClusterReport report = nodes[2]->driver->report();
  REQUIRE(report.models[0].groups.size() == 1);
  CHECK(report.models[0].groups[0].plan == placement->plan);
  CHECK(report.models[0].groups[0].epoch == placement->epoch);
  CHECK(report.nodes[0].is_self);
  CHECK(report.nodes[0].name == "c");
  CHECK(report.nodes[1].budget_bytes == 100);
  CHECK(report.nodes[1].read_bytes_s == 7);

  CHECK(nodes[0]->driver->unload("n").error().code == ErrorCode::kNotFound);
  REQUIRE(nodes[2]->driver->unload("m").ok());
  for (const auto& node : nodes) {
    CHECK(comes_true([&] { return !node->serving("m") && !node->runner.is_running("m"); }));
  }
}

TEST_CASE("cluster driver: a model that is loaded again is not ready until its new group is") {
  const TemporaryFolder folder;
  Nodes nodes = start_nodes(folder, new_cluster());
  for (int bytes = 50; bytes < 60; ++bytes) {
    REQUIRE(nodes[1]->load("m", bytes).ok());
    REQUIRE(comes_true([&] {
      const auto models = nodes[1]->driver->report().models;
      if (models.size() != 1 || models[0].phase != ModelPhase::kReady) return false;
      for (const ClusterGroupReport& group : models[0].groups) {
        if (group.phase == ModelPhase::kReady) CHECK(bytes_on_all(group.plan) == bytes);
      }
      return !models[0].groups.empty();
    }));
  }
}

TEST_CASE("cluster driver: a lost node's parts are placed on the others") {
  const TemporaryFolder folder;
  Nodes nodes = start_nodes(folder, new_cluster());
  REQUIRE(nodes[0]->load("m", 150).ok());
  const auto before = wait_for_placement(nodes, "m");
  REQUIRE(before.has_value());
  nodes.erase(std::find_if(nodes.begin(), nodes.end(),
                           [&](const auto& node) { return node->identity.id() == before->owner; }));
  CHECK(comes_true([&] {
    const auto after = nodes[0]->serving("m");
    return after && after->epoch != before->epoch && after == nodes[1]->serving("m") &&
           has_rank(*after, *nodes[0]) && has_rank(*after, *nodes[1]);
  }));
}

TEST_CASE("cluster driver: all nodes know a model's groups, and which ones remain") {
  const TemporaryFolder folder;
  Nodes nodes = start_nodes(folder, new_cluster());
  REQUIRE(nodes[1]->load("m", 60, 0, 2).ok());
  CHECK(comes_true([&] {
    const auto first = nodes[0]->all_serving("m", 2);
    return first.size() == 2 && first == nodes[1]->all_serving("m", 2) &&
           first == nodes[2]->all_serving("m", 2);
  }));
  const auto before = nodes[0]->all_serving("m", 2);
  REQUIRE(before.size() == 2);
  CHECK(before[0].owner != before[1].owner);
  CHECK(before[0].epoch < before[1].epoch);
  // If there are more than asked for, those with the highest epochs are returned.
  CHECK(nodes[0]->all_serving("m", 1) == std::vector{before[1]});
  CHECK(comes_true([&] {
    const auto models = nodes[2]->driver->report().models;
    return models.size() == 1 && models[0].groups.size() == 2 && models[0].sentence.empty();
  }));
  nodes.erase(std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) {
    return node->identity.id() == before[0].owner;
  }));
  CHECK(comes_true([&] {
    const auto after = nodes[0]->all_serving("m", 2);
    return after.size() == 2 && after[0] == before[1] && after == nodes[1]->all_serving("m", 2);
  }));
}

TEST_CASE("cluster driver: loaded models come back after all nodes have restarted") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  {
    Nodes nodes = start_nodes(folder, key);
    REQUIRE(nodes[0]->load("m", 150).ok());
    REQUIRE(wait_for_placement(nodes, "m").has_value());
  }
  Nodes nodes = start_nodes(folder, key);
  CHECK(wait_for_placement(nodes, "m").has_value());
}

TEST_CASE("cluster driver: a model on demand stops when unused and comes back when used") {
  const TemporaryFolder folder;
  Node node(folder, "a", new_cluster());
  const auto serves_when_used = [&] {
    node.loop->must_run([&] { node.driver->model_used("m"); });
    return node.serving("m").has_value();
  };
  REQUIRE(node.load("m", 50, 1).ok());
  CHECK(comes_true(serves_when_used));
  CHECK(comes_true([&] { return !node.serving("m").has_value(); }));
  CHECK(comes_true(serves_when_used));
}

TEST_CASE("cluster driver: a disk that refuses is reported to the caller") {
  const TemporaryFolder folder;
  Node node(folder, "a", new_cluster());
  std::filesystem::remove_all(node.desired);
  std::ofstream(node.desired) << "no folder";
  const Status loaded = node.load("m", 50);
  REQUIRE(!loaded.ok());
  CHECK(loaded.error().code == ErrorCode::kInternal);
  std::filesystem::remove(node.desired);
  std::filesystem::create_directory(node.desired);
  CHECK(node.load("n", 50).ok());
}

TEST_CASE("cluster driver: a disk that hangs is reported in time, and blocks nothing else") {
  const TemporaryFolder folder;
  UniqueFd reader;
  Node node(folder, "a", new_cluster(), {}, 300ms);
  const auto pipe = node.desired / "desired.json.new";  // writing to it waits for a reader
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const Status loaded = node.load("m", 50);
  REQUIRE(!loaded.ok());
  CHECK(loaded.error().code == ErrorCode::kTimeout);
  CHECK(node.driver->report().nodes.size() == 1);
  CHECK(!node.serving("m").has_value());  // an entry on no disk is not desired
  reader = UniqueFd(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(reader.is_open());
  node.driver.reset();
}

TEST_CASE("cluster driver: messages that are invalid or of another version do no harm") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  Node node(folder, "a", key);
  Diary diary;
  TestNode other(member_identity(folder, "b", key), local_options({node.address()}),
                 diary.events());
  REQUIRE(diary.waits_for("+a"));
  other.peers->send(node.identity.id(), "nonsense");
  other.peers->send(node.identity.id(), "");
  other.peers->send(node.identity.id(), R"({"version":99,"program":"9.9"})");
  CHECK(comes_true([&] {
    const auto nodes = node.driver->report().nodes;
    return nodes.size() == 2 && nodes[1].state == "foreign" && !nodes[1].note.empty();
  }));
  CHECK(node.load("m", 50).ok());
}

TEST_CASE("cluster driver: a join token is valid for an hour") {
  const TemporaryFolder folder;
  Node node(folder, "a", new_cluster());
  const auto text = node.driver->make_join_token();
  REQUIRE(text.ok());
  const auto token = parse_join_token(text.value());
  REQUIRE(token.ok());
  const auto now_s = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                           std::chrono::seconds(1));
  CHECK(token.value().expires_s > now_s + 3'500);
  CHECK(token.value().expires_s <= now_s + 3'600);
}
