#include "cluster/brain/messages.h"

#include <doctest/doctest.h>

#include <string>

#include "cluster/peers/peers.h"
#include "support/numbered_node.h"

using namespace lockstep;

static_assert(kClusterMessageBytesMax == Peers::kMessageBytesMax);

namespace {

DesiredEntry some_entry() {
  DesiredEntry entry;
  entry.name = "qwen3-8b";
  entry.stamp = {5, 6, node(7), 8};
  entry.wanted = true;
  entry.path = "/models/\"q\"";
  entry.draft_model = "Qwen/Qwen3-0.6B";
  entry.promises = {.context = 4096,
                    .streams = 2,
                    .parallel = 3,
                    .parallelism = Parallelism::kTensor,
                    .pinned = {node(1)},
                    .aliases = {"gpt"},
                    .idle_unload_s = 60,
                    .replicas = 4};
  return entry;
}

// Encodes to JSON and back, and checks that the text stays the same.
ClusterMessage again(const ClusterMessage& message) {
  const std::string text = encode_cluster_message(message);
  auto decoded = decode_cluster_message(text);
  REQUIRE(decoded.ok());
  CHECK(encode_cluster_message(decoded.value()) == text);
  CHECK(decoded.value().index() == message.index());
  return decoded.value();
}

}  // namespace

TEST_CASE("every message survives the way to another node") {
  const PlacementEpoch epoch{3, node(2), INT64_MAX};
  NodeHeartbeat beat;
  beat.incarnation = INT64_MAX;
  beat.sequence = 9;
  beat.budget_bytes = int64_t{64} << 30;
  beat.is_spare = true;
  beat.is_leaving = true;
  beat.wall_ms = 1'900'000'000'000;
  beat.power_mw = 45'500;
  beat.meters = {.cpu_percent = 12.5,
                 .memory_bytes = int64_t{64} << 30,
                 .memory_used_bytes = 5,
                 .process_bytes = 0,
                 .temperature_c = 61.25,
                 .disk_free_bytes = INT64_MAX,
                 .uptime_s = 7,
                 .cores = 16};
  beat.loads = {{"m", epoch, 3, INT64_MAX, 9}};
  beat.name = "berta";
  beat.data_addresses.assign(kDataAddressesMax, {"10.9.0.2", 30});
  beat.data_addresses.back() = {"fd00:9::2", kAddressBitsMax};
  beat.coordinator = node(1);
  beat.hears = {node(1), node(2)};
  beat.parts = {
      {"m", epoch, {{node(1), 5, 3}, {node(2), 6}}, 77, PartState::kFailed, 0, "out of memory", 2}};
  beat.operations_s = 11;
  beat.link_bytes_s = 12;
  beat.round_trips = {{node(2), 130}};
  beat.uses = {{"m", 12}};
  beat.models = {{"m", ModelPhase::kReady, epoch, ""}, {"m", ModelPhase::kLoading, epoch, "soon"}};
  const auto heard = std::get<NodeHeartbeat>(again(beat));
  CHECK(heard.parts == beat.parts);
  CHECK(heard.uses == beat.uses);
  CHECK(heard.models == beat.models);
  CHECK(heard.hears == beat.hears);
  CHECK(heard.incarnation == INT64_MAX);
  CHECK(heard.operations_s == 11);
  CHECK(heard.link_bytes_s == 12);
  CHECK(heard.round_trips == beat.round_trips);
  CHECK(heard.is_spare);
  CHECK(heard.is_leaving);
  CHECK(heard.wall_ms == beat.wall_ms);
  CHECK(heard.power_mw == beat.power_mw);
  CHECK(heard.meters == beat.meters);
  CHECK(heard.loads == beat.loads);
  CHECK(heard.name == "berta");
  CHECK(heard.data_addresses == beat.data_addresses);
  again(RestartOrder{});

  CHECK(std::get<DesiredUpdate>(again(DesiredUpdate{{some_entry()}})).entries[0] == some_entry());
  const auto order =
      std::get<ReserveOrder>(again(ReserveOrder{some_entry(), epoch, {{{node(1), 9, 2}}, 1}}));
  CHECK(order.entry == some_entry());
  CHECK(order.epoch == epoch);
  CHECK(order.plan == RankPlan{{{node(1), 9, 2}}, 1});
  CHECK(std::get<DesiredSummary>(again(DesiredSummary{{{"m", {1, 2, node(3), 4}}}}))
            .stamps[0]
            .second == Stamp{1, 2, node(3), 4});
  const auto reply =
      std::get<ReserveReply>(again(ReserveReply{"m", epoch, false, epoch, "no memory"}));
  CHECK(reply.reason == "no memory");
  CHECK(reply.highest == epoch);
  CHECK(std::get<StartOrder>(again(StartOrder{"m", epoch})).epoch == epoch);
  CHECK(std::get<StopOrder>(again(StopOrder{"m", epoch})).model == "m");
}

TEST_CASE("figures of a machine that nobody knows are left out, and impossible ones are refused") {
  NodeHeartbeat beat;
  beat.coordinator = node(1);
  beat.meters.cpu_percent = 3.0;
  const std::string text = encode_cluster_message(beat);
  CHECK(text.find(R"("meters":{"load":30})") != std::string::npos);
  CHECK(std::get<NodeHeartbeat>(again(beat)).meters == beat.meters);
  const auto with = [&](const std::string& meters) {
    std::string changed = text;
    const std::string known = R"("meters":{"load":30})";
    return decode_cluster_message(changed.replace(changed.find(known), known.size(), meters));
  };
  CHECK(with(R"("meters":{})").ok());
  CHECK(with(R"("other":{})").ok());
  CHECK_FALSE(with(R"("meters":3)").ok());
  CHECK_FALSE(with(R"("meters":{"load":1001})").ok());
  CHECK_FALSE(with(R"("meters":{"temperature":-1})").ok());
  CHECK_FALSE(with(R"("meters":{"uptime_s":"7"})").ok());
}

// So that a change of the form is noticed, and gets a version of its own.
TEST_CASE("a node's addresses for links have this form") {
  NodeHeartbeat beat;
  beat.data_addresses = {{"10.86.12.1", 30}, {"fd00:9::2", 64}};
  const std::string text = encode_cluster_message(beat);
  CHECK(text.find(R"("data_addresses":[{"host":"10.86.12.1","bits":30},)"
                  R"({"host":"fd00:9::2","bits":64}],"version":5})") != std::string::npos);
}

TEST_CASE("a message of another version is named and not read further") {
  const auto decoded =
      decode_cluster_message(R"({"version":9,"type":"unheard","program":"9.1","x":[]})");
  REQUIRE(decoded.ok());
  const auto* foreign = std::get_if<ForeignMessage>(&decoded.value());
  REQUIRE(foreign != nullptr);
  CHECK(foreign->version == 9);
  CHECK(foreign->program == "9.1");
}

TEST_CASE("an invalid message is corrupt") {
  for (const std::string text :
       {"", "{}", "[]", R"({"version":5})", R"({"version":5,"type":"vote"})",
        R"({"version":5,"type":"start","model":"m"})", R"({"version":-1})",
        R"({"version":5,"type":"start","model":"m","epoch":{"counter":-1}})"}) {
    CAPTURE(text);
    CHECK(!decode_cluster_message(text).ok());
  }
  CHECK(!decode_cluster_message(std::string(kClusterMessageBytesMax + 1, ' ')).ok());
  NodeHeartbeat boasting;  // the sum over all nodes must not overflow
  boasting.budget_bytes = INT64_MAX / 64;
  CHECK(!decode_cluster_message(encode_cluster_message(boasting)).ok());
  NodeHeartbeat many;
  many.data_addresses.assign(kDataAddressesMax + 1, {"10.9.0.2", 30});
  CHECK(!decode_cluster_message(encode_cluster_message(many)).ok());
  NodeHeartbeat wide;
  wide.data_addresses = {{"10.9.0.2", kAddressBitsMax + 1}};
  CHECK(!decode_cluster_message(encode_cluster_message(wide)).ok());
  wide.data_addresses = {{std::string(65, '1'), 24}};
  CHECK(!decode_cluster_message(encode_cluster_message(wide)).ok());
  NodeHeartbeat uneven;
  uneven.parts.resize(1);
  uneven.parts[0].model = "m";
  uneven.parts[0].ranks = {{node(1), 5}, {node(2), 6}};
  CHECK(decode_cluster_message(encode_cluster_message(uneven)).ok());
  uneven.parts[0].stages = 3;
  CHECK(!decode_cluster_message(encode_cluster_message(uneven)).ok());
  uneven.parts[0].stages = 0;
  CHECK(!decode_cluster_message(encode_cluster_message(uneven)).ok());
  uneven.parts[0].stages = 2;
  uneven.parts[0].ranks[1].share = 0;
  CHECK(!decode_cluster_message(encode_cluster_message(uneven)).ok());
  DesiredUpdate large;
  large.entries.assign(kEntriesPerMessage + 1, some_entry());
  CHECK(!decode_cluster_message(encode_cluster_message(large)).ok());
}
