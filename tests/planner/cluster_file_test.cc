#include "planner/cluster_file.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "planner/profiles/profiles.h"

using namespace lockstep;

namespace {

ClusterFacts cluster_of_file(std::string_view text) {
  auto cluster = parse_cluster(text);
  REQUIRE_MESSAGE(cluster.ok(), cluster.error().message);
  return std::move(cluster.value());
}

std::string error_of_file(std::string_view text) {
  const auto cluster = parse_cluster(text);
  REQUIRE(!cluster.ok());
  return cluster.error().message;
}

}  // namespace

TEST_CASE("machines and links by profile, with overridden figures") {
  const ClusterFacts cluster = cluster_of_file(R"({
    "machines": [{"name": "studio", "profile": "mac-studio-m3-ultra", "count": 2},
                 {"profile": "dgx-spark", "memory_gib": 100, "kernel_us": 1.5},
                 {"name": "box", "memory_gib": 60, "read_gb_s": 41}],
    "link": "10gbe",
    "links": [{"between": ["studio-1", "studio-2"], "profile": "tb5-rdma", "latency_us": 9}]})");
  REQUIRE(cluster.machines.size() == 4);
  CHECK(cluster.machines[0].name == "studio-1");
  CHECK(cluster.machines[1].name == "studio-2");
  CHECK(cluster.machines[1].memory_bytes == uint64_t{496} << 30);
  CHECK(cluster.machines[1].read_bytes_per_us == doctest::Approx(819e3 * 0.843));
  CHECK(cluster.machines[2].name == "dgx-spark");
  CHECK(cluster.machines[2].kernel_us == 1.5);
  CHECK(cluster.machines[3].read_bytes_per_us == 41e3);
  CHECK(cluster.machines[3].load_w == 0);
  CHECK(cluster.links.between(0, 1)->latency_us == 9);
  CHECK(cluster.links.between(0, 1)->kind == LinkKind::kVerbs);
  CHECK(cluster.links.between(2, 3)->latency_us == 40);
  CHECK(cluster.links.between(3, 2)->bytes_per_us == doctest::Approx(9.4 * 125));
  CHECK(!cluster.links.is_uniform());
}

TEST_CASE("machines without a direct link are reached through relays") {
  const ClusterFacts line = cluster_of_file(R"({
    "machines": [{"name": "m", "memory_gib": 8, "read_gb_s": 10, "count": 4}],
    "link": {"kind": "verbs", "latency_us": 5, "gbit_s": 8}, "topology": "line"})");
  CHECK(line.links.between(0, 1)->latency_us == 5);
  CHECK(line.links.between(0, 3)->latency_us == 15);
  CHECK(line.links.between(0, 3)->bytes_per_us == doctest::Approx(1000.0 / 3));
  const size_t all[] = {0, 1, 2, 3};
  CHECK(line.links.slowest(all)->latency_us == 15);
  const ClusterFacts ring = cluster_of_file(R"({
    "machines": [{"name": "m", "memory_gib": 8, "read_gb_s": 10, "count": 4}],
    "link": {"latency_us": 5, "gbit_s": 8}, "topology": "ring"})");
  CHECK(ring.links.between(0, 3)->latency_us == 5);
  CHECK(ring.links.between(0, 2)->latency_us == 10);
}

TEST_CASE("one machine needs no link") {
  CHECK(cluster_of_file(R"({"machines": [{"profile": "h200"}]})").machines.size() == 1);
}

TEST_CASE("every profile can be read") {
  CHECK(machine_profiles().size() == 7);
  for (const ProfileName& profile : machine_profiles()) {
    CAPTURE(profile.name);
    const auto machine = machine_profile(profile.name);
    REQUIRE_MESSAGE(machine.ok(), machine.error().message);
    CHECK(machine.value().operations_per_us > 0);
    CHECK(machine.value().load_w > machine.value().idle_w);
  }
  CHECK(link_profiles().size() == 6);
  for (const ProfileName& profile : link_profiles()) {
    const auto link = link_profile(profile.name);
    REQUIRE_MESSAGE(link.ok(), link.error().message);
    CHECK(link.value().latency_us > 0);
  }
}

TEST_CASE("figures say whether lockstep measured them") {
  const ClusterFacts cluster = cluster_of_file(R"({
    "machines": [{"name": "a", "profile": "dgx-spark"}, {"name": "b", "profile": "epyc-9005"},
                 {"name": "c", "profile": "dgx-spark", "read_gb_s": 200},
                 {"name": "d", "memory_gib": 8, "read_gb_s": 10, "device": "Radeon",
                  "lockstep": "1.0", "measured": ["read_gb_s", "memory_gib"]},
                 {"name": "e", "memory_gib": 8, "read_gb_s": 10, "measured": ["memory_gib"]}],
    "link": "10gbe"})");
  std::vector<bool> is_other;
  std::vector<std::string> measured_on;
  for (const Machine& machine : cluster.machines) {
    is_other.push_back(machine.is_other_software);
    measured_on.push_back(machine.measured_on);
  }
  CHECK(is_other == std::vector<bool>{true, false, false, false, false});
  CHECK(measured_on == std::vector<std::string>{"", "", "", "Radeon", ""});
  for (const char* wrong : {R"(["kernel_us"])", "1", "[1]"}) {
    std::string file = R"({"machines": [{"memory_gib": 3, "read_gb_s": 9, "measured": LIST}]})";
    file.replace(file.find("LIST"), 4, wrong);
    CHECK(error_of_file(file) ==
          "\"measured\" of machine 1 of the cluster must list figures that it has");
  }
}

TEST_CASE("invalid values are refused with their place") {
  CHECK(error_of_file("[]") == "a cluster file must hold a JSON object");
  CHECK(error_of_file("{}") == "a cluster needs \"machines\", a list of at least one object");
  CHECK(error_of_file(R"({"machines": [{"profile": "h200"}], "machine": 1})")
            .find("a cluster has no \"machine\"") == 0);
  CHECK(error_of_file(R"({"machines": [{"profile": "h300"}]})")
            .find("there is no machine profile \"h300\"; known are: mac-studio-m3-ultra") == 0);
  CHECK(error_of_file(R"({"machines": [{"profile": "h200", "memry_gib": 3}]})")
            .find("machine 1 of the cluster has an unknown key \"memry_gib\"") == 0);
  CHECK(error_of_file(R"({"machines": [{"memory_gib": 3}]})") ==
        "machine 1 of the cluster needs \"profile\", or \"memory_gib\" and \"read_gb_s\"");
  CHECK(error_of_file(R"({"machines": [{"profile": "h200", "reserved_gib": 3}]})") ==
        "\"reserved_gib\" of machine 1 of the cluster also needs \"memory_gib\"");
  CHECK(error_of_file(R"({"machines": [{"memory_gib": 3, "read_gb_s": 9, "efficiency": 0.5}]})") ==
        "\"efficiency\" of machine 1 of the cluster also needs \"bandwidth_gb_s\"");
  CHECK(error_of_file(R"({"machines": [{"profile": "h200", "memory_gib": -3}]})") ==
        "\"memory_gib\" of machine 1 of the cluster must be a number from 0.01 to 1000000");
  CHECK(error_of_file(
            R"({"machines": [{"profile": "h200"}, {"profile": "h200"}], "link": "10gbe"})") ==
        "two machines of the cluster are called h200; give each a \"name\"");
  CHECK(error_of_file(R"({"machines": [{"profile": "h200", "count": 2}]})") ==
        "there is no link from h200-1 to h200-2; \"link\" joins all machines");
  CHECK(error_of_file(R"({"machines": [{"profile": "h200", "count": 65}], "link": "10gbe"})")
            .find("\"count\" of machine 1 of the cluster must be from 1 to 64") == 0);
  CHECK(error_of_file(R"({"machines": [{"profile": "h200", "count": 2}], "link": "20gbe"})")
            .find("there is no link profile \"20gbe\"; known are: tb5-rdma") == 0);
  CHECK(error_of_file(
            R"({"machines": [{"profile": "h200", "count": 2}], "link": {"latency_us": 2}})") ==
        "\"link\" needs \"profile\", or \"latency_us\" and \"gbit_s\"");
  CHECK(error_of_file(R"({"machines": [{"profile": "h200", "count": 2}], "link": "10gbe",
                     "links": [{"between": ["h200-1", "x"], "profile": "1gbe"}]})") ==
        "\"between\" of link 1 must name machines of the cluster, not \"x\"");
  CHECK(error_of_file(R"({"machines": [{"profile": "h200", "count": 2}], "topology": "ring"})") ==
        "\"topology\" says which machines \"link\" joins, so \"link\" must be there");
}
