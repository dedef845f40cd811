#include "cluster/brain/membership.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "cluster/brain/local_parts.h"
#include "support/numbered_node.h"

using namespace lockstep;

namespace {

// Node 5 and the heartbeats that it hears.
struct Heard {
  Membership membership{node(5), {}, "five"};
  int64_t sequence = 0;

  void beat(int64_t now_ms, int from, bool hears_us = true, int64_t incarnation = 1,
            const std::string& name = "") {
    auto beat = std::make_shared<NodeHeartbeat>();
    beat->incarnation = incarnation;
    beat->name = name;
    beat->sequence = ++sequence;
    if (hears_us) beat->hears = {node(5)};
    membership.connected(now_ms, node(from));
    membership.heard(now_ms, node(from), beat);
  }
  bool is_alive(int number) const {
    const Member* member = membership.find(node(number));
    return member != nullptr && member->is_alive();
  }
};

}  // namespace

TEST_CASE("sentences show a node's name, and its id only where needed") {
  Heard heard;
  heard.beat(1'000, 3, true, 1, "three");
  heard.beat(1'000, 7);
  const Membership& membership = heard.membership;
  CHECK(membership.name_of(node(3)) == "three");
  CHECK(membership.name_of(node(5)) == "five");      // this node
  CHECK(membership.name_of(node(7)) == "07000000");  // has sent none
  CHECK(membership.name_of(node(9)) == "09000000");  // unknown
  CHECK(heard.membership.take_news().front() == "node three is connected");
  heard.beat(1'050, 3, true, 1, "three");  // the same node again is not a namesake
  CHECK(membership.name_of(node(3)) == "three");
  heard.beat(1'100, 8, true, 1, "three");
  heard.beat(1'100, 9, true, 1, "five");
  CHECK(membership.name_of(node(3)) == "three (03000000)");
  CHECK(membership.name_of(node(8)) == "three (08000000)");
  CHECK(membership.name_of(node(5)) == "five (05000000)");
  CHECK(membership.name_of(node(9)) == "five (09000000)");
  heard.membership.disconnected(1'100, node(3));
  heard.membership.tick(9'000);
  CHECK(membership.name_of(node(3)) == "three (03000000)");  // lost ones too
  heard.beat(9'000, 8, true, 2, "eight");
  CHECK(membership.name_of(node(3)) == "three");
  CHECK(membership.name_of(node(8)) == "eight");
}

TEST_CASE("a node is alive while its heartbeats come, and lost within two seconds of silence") {
  Heard heard;
  CHECK(heard.membership.coordinator() == node(5));
  heard.beat(1'000, 3);
  heard.beat(1'000, 7);
  CHECK(heard.is_alive(3));
  CHECK(heard.membership.coordinator() == node(3));
  heard.membership.tick(2'000);
  CHECK(heard.membership.find(node(3))->state == MemberState::kSuspect);
  heard.beat(2'200, 7);
  heard.membership.tick(2'399);
  CHECK(heard.is_alive(3));
  heard.membership.tick(2'400);
  CHECK(!heard.is_alive(3));
  CHECK(heard.is_alive(7));
  CHECK(heard.membership.coordinator() == node(5));
}

TEST_CASE("a link that works only one way does not count") {
  Heard heard;
  heard.beat(1'000, 3, false);
  CHECK(!heard.is_alive(3));
  CHECK(heard.membership.hears(1'000) == std::vector<NodeId>{node(3)});
  heard.beat(1'400, 3);
  CHECK(heard.is_alive(3));
  heard.beat(1'800, 3, false);
  CHECK(!heard.is_alive(3));
}

TEST_CASE("an unstable node must stay longer each time, and is trusted again later") {
  Heard heard;
  int64_t now_ms = 1'000;
  heard.beat(now_ms, 3);
  CHECK(heard.membership.find(node(3))->is_usable(now_ms));
  int64_t hold_ms = 0;
  for (int losses = 1; losses <= 8; ++losses) {
    now_ms += 2'000;
    heard.membership.tick(now_ms);
    REQUIRE(!heard.is_alive(3));
    heard.beat(now_ms, 3);
    const Member* member = heard.membership.find(node(3));
    REQUIRE(member->is_alive());
    CHECK(!member->is_usable(now_ms));
    const int64_t next_ms = member->usable_ms - now_ms;
    CHECK(next_ms >= hold_ms);
    CHECK(next_ms <= 60'000);
    hold_ms = next_ms;
  }
  CHECK(hold_ms == 60'000);
  for (int i = 0; i < 1'300; ++i) heard.beat(now_ms += 400, 3);
  CHECK(heard.membership.find(node(3))->losses == 0);
  CHECK(heard.membership.find(node(3))->is_usable(now_ms));
}

TEST_CASE("a node that announces its end is lost at once, without a penalty") {
  Heard heard;
  heard.beat(1'000, 3);
  auto last = std::make_shared<NodeHeartbeat>();
  last->incarnation = 1;
  last->sequence = ++heard.sequence;
  last->hears = {node(5)};
  last->is_leaving = true;
  heard.membership.heard(1'100, node(3), last);
  CHECK(!heard.is_alive(3));
  heard.membership.tick(1'300);
  CHECK(!heard.is_alive(3));
  heard.beat(1'900, 3, true, 2);
  CHECK(heard.is_alive(3));
  CHECK(heard.membership.find(node(3))->losses == 0);
  CHECK(heard.membership.find(node(3))->is_usable(1'900));
}

TEST_CASE("a node's clock difference is taken from its last heartbeat") {
  Heard heard;
  heard.beat(1'000, 3);
  auto late = std::make_shared<NodeHeartbeat>();
  late->incarnation = 1;
  late->sequence = ++heard.sequence;
  heard.membership.heard(1'100, node(3), late, -42'000);
  CHECK(heard.membership.find(node(3))->clock_ahead_ms == -42'000);
}

TEST_CASE("a node's restart counts as a loss, and late messages of its old life are ignored") {
  Heard heard;
  heard.beat(1'000, 3, true, 1);
  heard.beat(1'100, 3, true, 2);
  CHECK(heard.membership.find(node(3))->losses == 1);
  heard.beat(1'200, 3, true, 1);
  CHECK(heard.membership.find(node(3))->last->incarnation == 2);
  CHECK(heard.membership.find(node(3))->losses == 1);
}

TEST_CASE("a late report that an old connection was lost does not affect the new one") {
  Heard heard;
  heard.beat(1'000, 3);                           // the first connection
  heard.membership.connected(1'100, node(3));     // the second
  heard.membership.disconnected(1'200, node(3));  // the first
  CHECK(heard.membership.find(node(3))->is_connected());
  heard.membership.disconnected(1'300, node(3));
  CHECK(!heard.membership.find(node(3))->is_connected());
}

TEST_CASE("a node of another version is named and left out until it speaks ours") {
  Heard heard;
  heard.beat(1'000, 3);
  heard.membership.take_news();
  heard.membership.heard_foreign(1'100, node(3), {.version = 7, .program = "9.0"});
  const auto news = heard.membership.take_news();
  REQUIRE(news.size() == 2);
  CHECK(news[1].find("9.0 (cluster version 7)") != std::string::npos);
  CHECK(!heard.is_alive(3));
  CHECK(heard.membership.coordinator() == node(5));
  heard.beat(1'200, 3);
  CHECK(heard.is_alive(3));
}

TEST_CASE("the table of nodes is bounded, and absent nodes are evicted") {
  Heard heard;
  for (int i = 0; i < 80; ++i) heard.beat(1'000, 10 + i);
  CHECK(heard.membership.members().size() == kNodesMax - 1);
  for (int i = 0; i < 80; ++i) heard.membership.disconnected(3'000, node(10 + i));
  heard.membership.tick(9'000);
  heard.beat(9'000, 200);
  CHECK(heard.is_alive(200));
  CHECK(heard.membership.members().size() == kNodesMax - 1);
}

TEST_CASE("a node promises its memory once, and follows the highest epoch of a model") {
  LocalParts parts(node(5), 100);
  const auto order = [](std::string model, int64_t counter, int64_t bytes) {
    ReserveOrder made;
    made.entry.name = std::move(model);
    made.epoch = {counter, node(1), 1};
    made.plan.ranks = {{node(5), bytes}, {node(6), 1}};
    return made;
  };
  CHECK(parts.reserve(0, order("a", 3, 60)).is_granted);
  CHECK(parts.reserve(0, order("a", 3, 60)).is_granted);  // the same order again
  CHECK(parts.promised_bytes() == 60);
  CHECK(!parts.reserve(0, order("b", 1, 41)).is_granted);
  CHECK(parts.reserve(0, order("b", 1, 40)).is_granted);
  CHECK(!parts.reserve(0, order("a", 2, 1)).is_granted);
  CHECK(!parts.reserve(0, order("a", 4, 1)).is_granted);  // epoch 3 is still here
  CHECK(parts.start({"a", {3, node(1), 1}}) != nullptr);
  CHECK(parts.start({"a", {3, node(1), 1}}) == nullptr);
  CHECK(parts.start({"a", {4, node(1), 1}}) == nullptr);

  CHECK(parts.stop("a", {3, node(1), 1}));
  CHECK(parts.promised_bytes() == 100);  // until its processes have exited
  CHECK(parts.report("a", {3, node(1), 1}, {PartEvent::Kind::kStopped, ""}));
  CHECK(parts.promised_bytes() == 40);
  const auto late = parts.reserve(0, order("a", 3, 60));
  CHECK(!late.is_granted);
  CHECK(late.highest.counter == 3);
  CHECK(parts.reserve(0, order("a", 4, 60)).is_granted);

  CHECK(!parts.tick(kReservationMs - 1));
  CHECK(parts.tick(kReservationMs));  // never started
  CHECK(parts.promised_bytes() == 0);
}
