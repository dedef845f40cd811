#include "cluster/brain/brain.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/brain_cluster.h"
#include "support/numbered_node.h"

using namespace lockstep;
using lockstep::testing::Cluster;

TEST_CASE("one node alone loads a model on request, and unloads it") {
  Cluster cluster;
  cluster.add(1, 100);
  const auto answer = cluster.load(1, "a", 60);
  REQUIRE(answer.has_value());
  CHECK(answer->ok());
  cluster.pass(5'000);
  CHECK(cluster.where("a") == std::vector<int>{1});
  CHECK(cluster.progress(1, "a").phase == ModelPhase::kReady);
  CHECK(cluster.unload(1, "a")->ok());
  CHECK(cluster.where("a").empty());
  CHECK(cluster.at(1).parts().promised_bytes() == 0);
  const auto twice = cluster.unload(1, "a");
  REQUIRE(twice.has_value());
  CHECK(twice->error().message == "there is no model 'a'");
}

TEST_CASE("several models share machines within exact budgets, and a refusal gives its reason") {
  Cluster cluster;
  for (int i = 1; i <= 3; ++i) cluster.add(i, 100);
  cluster.pass(5'000);
  CHECK(cluster.load(2, "large", 240)->ok());
  CHECK(cluster.load(3, "small", 55)->ok());
  CHECK(cluster.load(3, "more", 6)->ok());
  cluster.pass(3'000);
  CHECK(cluster.where("large") == std::vector<int>{1, 2, 3});
  CHECK(!cluster.where("small").empty());
  CHECK(cluster.where("more").empty());
  const auto progress = cluster.progress(3, "more");  // as the coordinator reported it to node 3
  CHECK(progress.phase == ModelPhase::kWaiting);
  CHECK(progress.sentence.find("model 'more' needs") == 0);
  CHECK(cluster.unload(1, "small")->ok());
  cluster.pass(3'000);
  CHECK(!cluster.where("more").empty());
}

TEST_CASE("a lost machine's models are placed again, on a spare if there is one") {
  Cluster cluster;
  for (int i = 1; i <= 3; ++i) cluster.add(i, 100, i == 3);
  cluster.pass(5'000);
  cluster.load(1, "a", 150);
  cluster.pass(3'000);
  CHECK(cluster.where("a") == std::vector<int>{1, 2});
  cluster.kill(1);  // the coordinator
  cluster.pass(6'000);
  CHECK(cluster.where("a") == std::vector<int>{2, 3});
  CHECK(cluster.at(3).coordinator() == node(2));
}

TEST_CASE("a new coordinator changes no placement") {
  Cluster cluster;
  for (const int i : {2, 3, 4}) cluster.add(i, 100);
  cluster.pass(5'000);
  cluster.load(4, "a", 50, {.pinned = {node(4)}});
  cluster.pass(3'000);
  CHECK(cluster.where("a") == std::vector<int>{4});
  CHECK(cluster.starts_ == 1);
  cluster.add(1, 100);  // the lowest id
  cluster.pass(10'000);
  CHECK(cluster.at(4).coordinator() == node(1));
  cluster.kill(1);
  cluster.kill(2);
  cluster.pass(10'000);
  CHECK(cluster.at(4).coordinator() == node(3));
  CHECK(cluster.where("a") == std::vector<int>{4});
  CHECK(cluster.starts_ == 1);
}

TEST_CASE("any node can be restarted, except one that is away or shutting down") {
  Cluster cluster;
  for (const int number : {1, 2, 3}) cluster.add(number, 100);
  cluster.pass(1'000);
  CHECK(cluster.restart(3, 1)->ok());
  CHECK(cluster.restarted() == std::vector{1});
  CHECK(cluster.restart(2, 2)->ok());
  CHECK(cluster.restarted() == std::vector{2});
  cluster.kill(3);
  cluster.pass(2'000);
  const auto away = cluster.restart(1, 3);
  REQUIRE((away && !away->ok()));
  CHECK(away->error().code == ErrorCode::kPeerLost);
  CHECK(cluster.restarted().empty());
  cluster.leave(2);
  cluster.restart(2, 2);
  CHECK(cluster.restarted().empty());
}

TEST_CASE("a part that fails is started again with a growing delay") {
  Cluster cluster;
  cluster.add(1, 100);
  cluster.pass(5'000);
  cluster.fails_ = true;
  cluster.load(1, "a", 50);
  cluster.pass(60'000);
  CHECK(cluster.starts_ >= 4);  // after 1, 2, 4, 8, 16 s
  CHECK(cluster.starts_ <= 7);
  CHECK(cluster.progress(1, "a").sentence.find("no such file") != std::string::npos);
  cluster.fails_ = false;
  cluster.pass(61'000);
  CHECK(cluster.where("a") == std::vector<int>{1});
}

TEST_CASE("a new model does not take the place of one that is being placed again") {
  Cluster cluster;
  cluster.add(1, 100);
  cluster.add(2, 100);
  cluster.pass(4'000);
  cluster.load(1, "old", 150);
  cluster.pass(2'000);
  REQUIRE(cluster.where("old") == std::vector{1, 2});
  cluster.failing_ = "old";
  cluster.fail_parts("old");
  cluster.load(1, "new", 60);
  cluster.pass(5'000);
  CHECK(cluster.where("old").empty());
  CHECK(cluster.where("new").empty());
  CHECK(cluster.count(1, "new", ModelPhase::kWaiting) == 1);
  SUBCASE("which then has it") {
    cluster.failing_ = "";
    cluster.pass(20'000);
    CHECK(cluster.where("old") == std::vector{1, 2});
    CHECK(cluster.where("new").empty());
  }
  SUBCASE("unless that was unloaded") {
    cluster.unload(1, "old");
    cluster.pass(5'000);
    CHECK(cluster.where("new").size() == 1);
  }
  SUBCASE("unless that takes too long") {
    cluster.pass(40'000);
    CHECK(cluster.where("new").size() == 1);
  }
}

TEST_CASE("a model on demand is loaded when used on any node, and unloaded when idle") {
  Cluster cluster;
  cluster.add(1, 100);
  cluster.add(2, 100);
  cluster.pass(5'000);
  cluster.load(2, "a", 50, {.idle_unload_s = 10});
  cluster.pass(3'000);
  CHECK(cluster.where("a").size() == 1);
  cluster.pass(12'000);
  CHECK(cluster.where("a").empty());
  CHECK(cluster.at(1).desired().find("a")->wanted);
  cluster.use(2, "a");
  cluster.pass(3'000);
  CHECK(cluster.where("a").size() == 1);
}

TEST_CASE("a model on demand stays as long as its last user asks, or longer if others use it") {
  Cluster cluster;
  cluster.add(1, 100);
  cluster.add(2, 100);
  cluster.pass(5'000);
  cluster.load(2, "a", 50, {.idle_unload_s = 10});
  cluster.pass(3'000);
  CHECK(cluster.idle_left_ms(2, "a") == 7'000);
  CHECK(cluster.idle_left_ms(1, "a") > 6'000);  // as node 2's heartbeats say

  cluster.keep(2, "a", 0);
  CHECK(cluster.idle_left_ms(2, "a") == 0);
  cluster.pass(1'000);
  CHECK(cluster.where("a").empty());

  cluster.use(1, "a");
  cluster.keep(1, "a", 30'000);
  CHECK(cluster.idle_left_ms(1, "a") == 30'000);
  cluster.pass(28'000);
  CHECK(cluster.where("a").size() == 1);
  cluster.pass(4'000);
  CHECK(cluster.where("a").empty());

  cluster.use(1, "a");
  cluster.keep(1, "a", -1);
  cluster.pass(100'000);
  CHECK(cluster.where("a").size() == 1);
  cluster.use(2, "a");
  cluster.keep(1, "a", 0);  // node 2's user has not asked for this
  cluster.pass(8'000);
  CHECK(cluster.where("a").size() == 1);
  cluster.pass(4'000);
  CHECK(cluster.where("a").empty());

  cluster.load(1, "always", 50);
  cluster.pass(3'000);
  cluster.keep(1, "always", 0);
  cluster.pass(3'000);
  CHECK(cluster.where("always").size() == 1);
}

TEST_CASE("after a power cut everything comes back from the disks") {
  Cluster cluster;
  cluster.add(1, 100);
  cluster.add(2, 100);
  cluster.pass(5'000);
  cluster.load(1, "a", 150);
  cluster.pass(3'000);
  cluster.kill(1);
  cluster.kill(2);
  cluster.add(2, 100);
  cluster.add(1, 100);
  cluster.pass(10'000);
  CHECK(cluster.where("a") == std::vector<int>{1, 2});
}

TEST_CASE("a write that the disk refuses takes no effect on any node") {
  Cluster cluster;
  cluster.add(1, 100);
  cluster.add(2, 100);
  cluster.pass(5'000);
  cluster.load(1, "kept", 10);
  cluster.disks_refuse_ = true;
  CHECK(cluster.load(1, "a", 50)->error().message == "the disk is full");
  CHECK(!cluster.unload(1, "kept"));  // answered when the disk is tried again
  cluster.pass(6'000);
  const auto unloaded = cluster.answer();
  REQUIRE(unloaded);
  CHECK(!unloaded->ok());
  for (const int number : {1, 2}) {
    CHECK(cluster.at(number).desired().find("a") == nullptr);
    CHECK(cluster.at(number).desired().find("kept")->wanted);
  }
  CHECK(cluster.starts_ == 1);
  cluster.disks_refuse_ = false;
  cluster.pass(10'000);  // the disk is written again, without the refused write
  CHECK(cluster.at(1).asked() == cluster.at(1).desired());
  CHECK(cluster.starts_ == 1);
  CHECK(cluster.load(1, "a", 50)->ok());
  CHECK(cluster.at(2).desired().find("a")->path == "50");
}

TEST_CASE("a write waits for the disk, and the next write sees it") {
  BrainOptions options;
  options.self = node(1);
  options.budget_bytes = 100;
  const auto plan = [](const DesiredEntry& entry, size_t groups,
                       std::span<const NodeOffer> offers) {
    return split_groups(entry, groups, std::stoll(entry.path), offers);
  };
  Brain brain(options, {}, plan, {0, 1'000});
  DesiredEntry entry;
  entry.name = "m";
  entry.path = "10";
  const auto persist_in = [](const ClusterActions& actions) {
    const PersistAction* found = nullptr;
    for (const ClusterAction& action : actions) {
      if (const auto* persist = std::get_if<PersistAction>(&action)) found = persist;
    }
    return found;
  };
  const ClusterActions asked = brain.load({1, 1'001}, 1, entry);
  REQUIRE(persist_in(asked) != nullptr);
  CHECK(persist_in(asked)->state->find("m")->wanted);
  CHECK(brain.desired().find("m") == nullptr);
  CHECK(persist_in(brain.unload({2, 1'002}, 2, "m")) == nullptr);  // one write at a time
  const ClusterActions loaded = brain.on_persisted({3, 1'003}, persist_in(asked)->revision, Ok{});
  CHECK(brain.desired().find("m")->wanted);
  REQUIRE(persist_in(loaded) != nullptr);
  CHECK_FALSE(persist_in(loaded)->state->find("m")->wanted);
  brain.on_persisted({4, 1'004}, persist_in(loaded)->revision, Ok{});
  CHECK_FALSE(brain.desired().find("m")->wanted);
}

TEST_CASE("a node that restarts without its last writes does not diverge from the others") {
  Cluster cluster;
  cluster.add(1, 100);
  cluster.add(2, 100);
  cluster.pass(5'000);
  cluster.load(1, "a", 50);
  cluster.lose_disk(1);
  // In its next incarnation, at the same wall clock time, its stamps start from the same number.
  cluster.kill(1);
  cluster.is_cut_ = true;
  cluster.add(1, 100);
  CHECK(cluster.load(1, "a", 60)->ok());
  cluster.is_cut_ = false;
  cluster.pass(5'000);
  CHECK(cluster.at(1).desired() == cluster.at(2).desired());
}

TEST_CASE("changed promises place a model again, changed aliases do not") {
  Cluster cluster;
  cluster.add(1, 100);
  cluster.pass(5'000);
  cluster.load(1, "a", 50);
  cluster.pass(2'000);
  CHECK(cluster.starts_ == 1);
  cluster.load(1, "a", 50, {.aliases = {"b"}});
  cluster.pass(2'000);
  CHECK(cluster.starts_ == 1);
  cluster.load(1, "a", 50, {.context = 9});
  cluster.pass(2'000);
  CHECK(cluster.starts_ == 2);
  CHECK(cluster.where("a") == std::vector<int>{1});
}

TEST_CASE("replicas are groups on separate nodes, and a lost one is formed again") {
  Cluster cluster;
  for (int i = 1; i <= 5; ++i) cluster.add(i, 100);
  cluster.pass(5'000);
  cluster.load(5, "a", 150, {.replicas = 2});  // two nodes each
  cluster.pass(3'000);
  CHECK(cluster.where("a").size() == 4);
  CHECK(cluster.starts_ == 4);
  CHECK(cluster.count(5, "a", ModelPhase::kReady) == 2);
  CHECK(cluster.progress(5, "a").epoch != PlacementEpoch{});
  // The unused node replaces the lost one; the other group keeps running.
  const int victim = cluster.where("a").front();
  cluster.kill(victim);
  cluster.pass(4'000);
  const int asked = cluster.where("a").front();
  CHECK(cluster.where("a").size() == 4);
  CHECK(cluster.starts_ == 6);
  CHECK(cluster.count(asked, "a", ModelPhase::kReady) == 2);
  // Without room for a second group one serves, and the counts are reported.
  cluster.kill(cluster.where("a").back());
  cluster.pass(6'000);
  const int left = cluster.where("a").front();
  CHECK(cluster.where("a").size() == 2);
  CHECK(cluster.count(left, "a", ModelPhase::kReady) == 1);
  CHECK(cluster.count(left, "a", ModelPhase::kWaiting) == 1);
  const std::string sentence = cluster.at(left).progress().back().sentence;
  MESSAGE(sentence);
  CHECK(sentence.find("1 of 2 groups are placed; the next one waits: model 'a' needs") == 0);
  cluster.add(victim, 100);
  cluster.pass(6'000);
  CHECK(cluster.where("a").size() == 4);
}

TEST_CASE("fewer replicas are placed if no more fit, and the counts say so") {
  Cluster cluster;
  for (int i = 1; i <= 2; ++i) cluster.add(i, 100);
  cluster.pass(5'000);
  cluster.load(1, "a", 60, {.replicas = 3});
  cluster.pass(3'000);
  CHECK(cluster.where("a") == std::vector<int>{1, 2});
  CHECK(
      cluster.at(1).progress().back().sentence ==
      "2 of 3 groups are placed; the next one waits: 2 of 2 nodes each hold a group of model 'a'; "
      "groups do not share nodes, and no other node may be used");
  // No other group is touched when another promise of the same model is withdrawn.
  cluster.load(1, "b", 30);
  cluster.pass(3'000);
  CHECK(cluster.where("b").size() == 1);
  CHECK(cluster.unload(2, "a")->ok());
  cluster.pass(3'000);
  CHECK(cluster.where("a").empty());
  CHECK(cluster.where("b").size() == 1);
}

TEST_CASE("a new coordinator keeps replicas, and surplus ones are removed after a partition") {
  Cluster cluster;
  for (const int i : {2, 3, 4}) cluster.add(i, 100);
  cluster.pass(5'000);
  cluster.load(4, "a", 60, {.replicas = 2});
  cluster.pass(3'000);
  REQUIRE(cluster.starts_ == 2);
  cluster.add(1, 100);
  cluster.pass(10'000);
  CHECK(cluster.at(2).coordinator() == node(1));
  CHECK(cluster.starts_ == 2);
  cluster.is_cut_ = true;  // each node is alone, and places what it can
  cluster.pass(10'000);
  CHECK(cluster.where("a").size() == 4);
  cluster.is_cut_ = false;
  cluster.pass(20'000);
  CHECK(cluster.where("a").size() == 2);
  CHECK(cluster.count(1, "a", ModelPhase::kReady) == 2);
}

TEST_CASE("replicas that are pinned use the pinned nodes that are alive") {
  Cluster cluster;
  for (int i = 1; i <= 3; ++i) cluster.add(i, 100);
  cluster.pass(5'000);
  cluster.load(1, "a", 60, {.pinned = {node(2), node(3), node(9)}, .replicas = 3});
  cluster.pass(3'000);
  CHECK(cluster.where("a") == std::vector<int>{2, 3});
  CHECK(cluster.at(1).progress().back().sentence ==
        "2 of 3 groups are placed; the next one waits: model 'a' is pinned to node 09000000, which "
        "is not connected");
}

TEST_CASE("a model that is pinned to a missing node says so") {
  Cluster cluster;
  cluster.add(1, 100);
  cluster.pass(5'000);
  cluster.load(1, "a", 50, {.pinned = {node(9)}});
  cluster.pass(1'000);
  CHECK(cluster.progress(1, "a").sentence ==
        "model 'a' is pinned to node 09000000, which is not connected");
}

TEST_CASE("a model that is pinned to a node that was lost names it") {
  Cluster cluster;
  for (int i = 1; i <= 2; ++i) cluster.add(i, 100);
  cluster.pass(5'000);
  cluster.kill(2);
  cluster.pass(5'000);
  cluster.load(1, "a", 50, {.pinned = {node(2)}});
  cluster.pass(1'000);
  CHECK(cluster.progress(1, "a").sentence ==
        "model 'a' is pinned to node machine-2, which is not connected");
}

TEST_CASE("long entries are sent in several messages, each small enough for a connection") {
  DesiredState desired;
  for (int i = 0; i < 64; ++i) {
    DesiredEntry entry;
    entry.name = "m" + std::to_string(i);
    entry.stamp = {i + 1, 0, node(2)};
    entry.wanted = true;
    entry.path = std::string(kModelPathBytesMax, '"');  // two bytes each in JSON
    entry.promises.aliases.assign(kAliasesMax, std::string(kModelNameBytesMax, '"'));
    desired.merge(entry);
  }
  BrainOptions options;
  options.self = node(1);
  Brain brain(options, desired, {}, ClusterTime{0, 1'000});
  size_t updates = 0;
  for (const ClusterAction& action : brain.on_message(
           ClusterTime{1, 1'000}, node(2), std::make_shared<ClusterMessage>(DesiredSummary{}))) {
    const auto* sent = std::get_if<SendAction>(&action);
    const auto* update =
        sent == nullptr ? nullptr : std::get_if<DesiredUpdate>(sent->message.get());
    if (update == nullptr) continue;
    ++updates;
    CHECK(!update->entries.empty());
    CHECK(update->entries.size() < 64);
    CHECK(encode_cluster_message(*sent->message).size() <= kClusterMessageBytesMax);
  }
  CHECK(updates == 1);
}

TEST_CASE("a plan function that must read a table first is called again when it is done") {
  bool has_read = false;
  int asked = 0;
  const auto plan = [&](const DesiredEntry& entry, size_t groups,
                        std::span<const NodeOffer> offers) -> Result<std::vector<RankPlan>> {
    ++asked;
    CHECK(groups == 1);
    if (has_read) return std::vector{RankPlan{{{node(1), 40, 3}, {node(1), 20, 1}}, 2}};
    CHECK(offers[0].operations_s == 5);
    CHECK(offers[0].link_bytes_s == 6);
    CHECK(offers[0].round_trips == std::vector<RoundTrip>{{node(2), 9}});
    return Error{ErrorCode::kTimeout, "the table of " + entry.name + " is being read"};
  };
  BrainOptions options;
  options.self = node(1);
  options.budget_bytes = 100;
  options.operations_s = 5;
  options.link_bytes_s = 6;
  Brain brain(options, {}, plan, {0, 1'000});
  brain.set_round_trips({{node(2), 9}});
  DesiredEntry entry;
  entry.name = "m";
  entry.path = "m";
  for (const ClusterAction& action : brain.load({1, 1'001}, 1, entry)) {
    const auto* persist = std::get_if<PersistAction>(&action);
    if (persist != nullptr) brain.on_persisted({1, 1'001}, persist->revision, Ok{});
  }
  for (int64_t ms = 0; ms <= 4'000; ms += kTickMs) brain.on_tick({ms, 1'000 + ms});
  CHECK(asked == 1);
  CHECK(brain.progress()[0].sentence == "the table of m is being read");
  CHECK(brain.progress()[0].phase == ModelPhase::kPlacing);  // not refused
  has_read = true;
  const ClusterActions actions = brain.plan_again({4'001, 5'001});
  CHECK(asked == 2);
  REQUIRE(brain.parts().reports().size() == 1);
  const PlacementShare part = brain.parts().reports()[0];
  CHECK(part.bytes == 60);
  CHECK(part.stages == 2);
  CHECK(part.ranks[0].share == 3);
}
