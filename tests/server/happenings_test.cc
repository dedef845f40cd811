#include "server/events/happenings.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

using State = ModelStatus::State;

struct Cluster {
  ClusterReport report;
  std::vector<ModelStatus> models;
  Happenings happenings;
  Happenings::Time now{};

  ClusterNodeReport& node(char letter, std::string state) {
    const NodeId id = *NodeId::parse(std::string(64, letter));
    for (ClusterNodeReport& one : report.nodes) {
      if (one.id != id) continue;
      one.state = std::move(state);
      return one;
    }
    report.nodes.push_back({.id = id, .name = std::string(1, letter), .state = std::move(state)});
    return report.nodes.back();
  }
  // "kind: sentence" of each, after that many milliseconds.
  std::string look(int ms = 250) {
    now += std::chrono::milliseconds(ms);
    std::string told;
    for (const Happening& one : happenings.look(report, models, now)) {
      told += one.kind + ": " + one.sentence + "\n";
    }
    return told;
  }
};

ModelStatus status(State state, std::string last_error = "", int restarts = 0) {
  ModelStatus made;
  made.state = state;
  made.name = "m";
  made.last_error = std::move(last_error);
  made.restarts = restarts;
  return made;
}

ClusterModelReport wanted(const char* name, ModelPhase phase, std::string sentence = "") {
  ClusterModelReport made;
  made.entry.name = name;
  made.phase = phase;
  made.sentence = std::move(sentence);
  return made;
}

}  // namespace

TEST_CASE("happenings: the first look tells nothing, and neither does one without a change") {
  Cluster cluster;
  cluster.node('a', "alive");
  cluster.node('b', "dead");
  cluster.models = {status(State::kReady)};
  CHECK(cluster.look() == "");
  CHECK(cluster.look() == "");
}

TEST_CASE("happenings: nodes join, are lost, and return; a silent one is not lost yet") {
  Cluster cluster;
  cluster.node('a', "alive");
  cluster.node('b', "absent");
  cluster.look();
  cluster.node('b', "alive");
  cluster.node('c', "alive");
  CHECK(cluster.look() == "node_back: b is back\njoined: c has joined\n");
  cluster.node('b', "suspect");
  CHECK(cluster.look() == "");
  cluster.node('b', "dead").note = "it does not answer";
  CHECK(cluster.look() == "node_lost: b is lost: it does not answer\n");
  CHECK(cluster.look() == "");
  cluster.report.nodes.pop_back();  // c, which the others have forgotten
  CHECK(cluster.look() == "node_lost: c is lost\n");
}

TEST_CASE("happenings: a node that has just connected joins once it is heard") {
  Cluster cluster;
  cluster.look();
  cluster.node('b', "suspect").name = "";
  CHECK(cluster.look() == "");
  cluster.node('b', "alive").name = "berta";
  CHECK(cluster.look() == "joined: berta has joined\n");
}

TEST_CASE("happenings: a model of this node is loaded, paused, healed, and fails") {
  Cluster cluster;
  cluster.look();
  cluster.models = {status(State::kLoading)};
  CHECK(cluster.look() == "load: m is being loaded\n");
  cluster.models = {status(State::kReady)};
  CHECK(cluster.look() == "ready: m is ready\n");
  cluster.models = {status(State::kRestarting, "rank 1 was killed", 1)};
  CHECK(cluster.look() == "paused: m waits: rank 1 was killed\n");
  cluster.models = {status(State::kReady, "rank 1 was killed", 1)};
  CHECK(cluster.look(1300) == "healed: m serves again after 1.3 s\n");
  cluster.models = {status(State::kFailed, "no memory", 1)};
  CHECK(cluster.look() == "failed: m has failed: no memory\n");
  CHECK(cluster.look() == "");
  cluster.models.clear();
  CHECK(cluster.look() == "unload: m is unloaded\n");
}

TEST_CASE("happenings: a loss that is over before the next look is told") {
  Cluster cluster;
  cluster.models = {status(State::kReady)};
  cluster.look();
  cluster.models = {status(State::kReady, "rank 1 was killed", 1)};
  CHECK(cluster.look() == "healed: m was formed again: rank 1 was killed\n");
  CHECK(cluster.look() == "");
}

TEST_CASE("happenings: a model of the cluster waits with its reason, once") {
  Cluster cluster;
  cluster.look();
  cluster.report.models = {wanted("big", ModelPhase::kWaiting, "it needs 9 GiB, 5 are free")};
  CHECK(cluster.look() ==
        "load: big is being loaded\nwaits: big waits: it needs 9 GiB, 5 are free\n");
  cluster.report.models = {wanted("big", ModelPhase::kWaiting, "it needs 9 GiB, 6 are free")};
  CHECK(cluster.look() == "");
  cluster.report.models = {wanted("big", ModelPhase::kReady)};
  CHECK(cluster.look() == "ready: big is ready\n");
  cluster.report.models.clear();
  CHECK(cluster.look() == "unload: big is unloaded\n");
}

}  // namespace lockstep
