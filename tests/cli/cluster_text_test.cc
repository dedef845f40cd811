#include "cli/client/cluster_text.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "cli/client/load_watch.h"

using namespace lockstep;

namespace {

Json json(std::string_view text) {
  auto parsed = parse_json(text);
  REQUIRE(parsed.ok());
  return parsed.value();
}

Json status_of_model(std::string_view phase, std::string_view sentence) {
  return JsonObject{
      {"models", JsonArray{JsonObject{{"name", "m"}, {"phase", phase}, {"sentence", sentence}}}}};
}

}  // namespace

TEST_CASE("a cluster is shown as a table of its nodes and the PINs to type elsewhere") {
  CHECK(cluster_lines(json(R"({"models":[]})")).empty());
  const auto lines = cluster_lines(json(R"({"cluster":"12345678","beacon_problem":"no multicast",
      "nodes":[{"name":"alpha","state":"alive","is_self":true,"is_coordinator":true,
                "budget_bytes":4000000000,"promised_bytes":1000000000,"read_bytes_s":52000000000},
               {"name":"","id":"abcdef0123456789","state":"dead","note":"silent for 5 s"},
               "no object"],
      "pins":[{"name":"beta","address":"10.0.0.2","pin":"12345678"}]})"));
  REQUIRE(lines.size() == 7);
  CHECK(lines[0] == "cluster 12345678, 3 nodes");
  CHECK(lines[2].find("alpha                alive") != std::string::npos);
  CHECK(lines[2].find("3.00 GB of 4.00 GB   52 GB/s  this node, coordinator") != std::string::npos);
  CHECK(lines[3].find("abcdef01") != std::string::npos);
  CHECK(lines[3].find("silent for 5 s") != std::string::npos);
  CHECK(lines[5] == "  no multicast");
  CHECK(lines[6] == "beta (10.0.0.2) asks to join. If it is yours, type there: 12345678");
}

TEST_CASE("nodes that share a name are told apart by their ids") {
  const auto lines = cluster_lines(json(R"({"cluster":"12345678","nodes":[
      {"name":"box","id":"aaaaaaaa11111111","state":"alive"},
      {"name":"box","id":"bbbbbbbb22222222","state":"dead"},
      {"name":"desk","id":"cccccccc33333333","state":"alive"}]})"));
  REQUIRE(lines.size() == 5);
  CHECK(lines[2].starts_with("  box (aaaaaaaa)       alive"));
  CHECK(lines[3].starts_with("  box (bbbbbbbb)       dead"));
  CHECK(lines[4].starts_with("  desk                 alive"));
}

TEST_CASE("a model shows how much of it is on the disk of the node that was asked") {
  CHECK(disk_text(json(R"({"disk":{"size_bytes":1200000000,"whole_bytes":4500000000}})")) ==
        "1.20 GB of 4.50 GB on this disk");
  CHECK(disk_text(json(R"({"disk":{"size_bytes":0,"whole_bytes":4500000000}})")) ==
        "0.00 KB of 4.50 GB on this disk");
  CHECK(disk_text(json(R"({"disk":{"size_bytes":2000000000,"whole_bytes":2000000000}})")) ==
        "2.00 GB on this disk, whole");
  CHECK(disk_text(json(R"({"disk":null})")).empty());
  CHECK(disk_text(json("{}")).empty());
}

TEST_CASE("a model shows where its ranks are, or why it has none") {
  const Json placed = json(R"({"state":"ready","phase":"ready","sentence":"","placement":[
      {"rank":0,"node_name":"alpha","bytes":1000000000},
      {"rank":1,"node_name":"beta","bytes":500000000},
      {"rank":2,"node_name":"alpha","bytes":1000000000}]})");
  CHECK(placement_lines(placed) ==
        std::vector<std::string>{"alpha: ranks 0, 2, 2.00 GB", "beta: rank 1, 500.00 MB"});
  CHECK(placed_on(placed) == "alpha and beta");
  CHECK(state_text(placed) == "ready");
  const Json twice = json(R"({"phase":"ready","sentence":"1 of 3","placement":[
      {"rank":0,"node_name":"alpha","bytes":1000000000,"group":0},
      {"rank":0,"node_name":"beta","bytes":500000000,"group":1},
      {"rank":1,"node_name":"gamma","bytes":500000000,"group":1}],
      "groups":[{"group":0,"phase":"ready","running":3},
                {"group":1,"phase":"loading","running":0}]})");
  CHECK(placement_lines(twice) ==
        std::vector<std::string>{"1 of 3", "group 0: ready, 3 requests running",
                                 "  alpha: rank 0, 1.00 GB", "group 1: loading, 0 requests running",
                                 "  beta: rank 0, 500.00 MB", "  gamma: rank 1, 500.00 MB"});
  CHECK(placed_on(twice) == "alpha, beta and gamma");
  const Json waiting =
      json(R"({"state":"loading","phase":"waiting","sentence":"it is too large"})");
  CHECK(placement_lines(waiting) == std::vector<std::string>{"it is too large"});
  CHECK(placed_on(waiting).empty());
  CHECK(state_text(waiting) == "waiting");
  CHECK(state_text(json(R"({"state":"restarting"})")) == "restarting");
}

TEST_CASE("waiting for several groups ends when all are ready or known not to fit") {
  using State = LoadWatch::State;
  LoadWatch watch("m");
  const auto look = [&](const char* second, const char* sentence, int seconds) {
    const std::string text = fmt::format(
        R"({{"models":[{{"name":"m","phase":"ready","sentence":"{}","wanted":{{"replicas":2}},
            "placement":[{{"rank":0,"node_name":"a","group":0}}],
            "groups":[{{"group":0,"phase":"ready"}}{}]}}]}})",
        sentence, second);
    return watch.look(json(text), LoadWatch::Clock::time_point() + std::chrono::seconds(seconds));
  };
  const char* const loading = R"(,{"group":1,"phase":"loading"})";
  CHECK(look(loading, "", 0).state == State::kWaiting);
  CHECK(look(loading, "", 0).text == "1 of 2 groups ready");
  CHECK(look(loading, "that was it", 60).state == State::kWaiting);
  CHECK(look("", "too large", 61).state == State::kWaiting);
  CHECK(look("", "too large", 70).text == "1 of 2 groups ready: too large");
  const auto partial = look("", "too large", 71);
  CHECK(partial.state == State::kPartial);
  CHECK(partial.text == "too large");
  CHECK(look(R"(,{"group":1,"phase":"ready"})", "", 72).state == State::kReady);
}

TEST_CASE("waiting for a model shows progress, the end, and a lasting reason") {
  using State = LoadWatch::State;
  LoadWatch watch("m");
  const LoadWatch::Clock::time_point start{};
  const auto after = [&](int seconds) { return start + std::chrono::seconds(seconds); };
  CHECK(watch.look(status_of_model("waiting", "it is too large"), after(0)).state ==
        State::kWaiting);
  CHECK(watch.look(status_of_model("waiting", "it is too large"), after(9)).state ==
        State::kWaiting);
  CHECK(watch.look(status_of_model("placing", ""), after(10)).text == "placing");
  const Json loading = json(R"({"models":[{"name":"m","phase":"loading","sentence":"",
      "loading":{"read_bytes":1000000,"whole_bytes":4000000,"bytes_s":500000}}]})");
  CHECK(watch.look(loading, after(10)).text ==
        "loading: 1.00 MB of 4.00 MB, 500.00 KB/s, 0:06 left");
  CHECK(watch.look(status_of_model("waiting", "again in 3 s"), after(11)).text ==
        "waiting: again in 3 s");
  CHECK(watch.look(status_of_model("waiting", "again in 2 s"), after(20)).state == State::kWaiting);
  const auto refused = watch.look(status_of_model("waiting", "it is too large"), after(21));
  CHECK(refused.state == State::kRefused);
  CHECK(refused.text == "it is too large");
  CHECK(watch.look(status_of_model("ready", ""), after(22)).state == State::kReady);
  CHECK(watch.look(json(R"({"models":[]})"), after(23)).state == State::kGone);
  CHECK(LoadWatch("other").look(status_of_model("ready", ""), after(0)).state == State::kGone);
}
