#include "node/network/shared_networks.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/numbered_node.h"

using namespace lockstep;

namespace {

DataNetworks given_networks(const std::vector<std::string>& texts) {
  auto parsed = DataNetworks::parse(texts);
  REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
  return std::move(parsed.value());
}

std::string no_way(const std::string&) {
  return "";
}

std::string cable_host(int cable, int end) {
  return "10.86.12." + std::to_string(4 * cable + 1 + end);
}

// Machines joined by cables with a /30 each, in the order of `cables`.
std::vector<DataNode> cabled(int count, const std::vector<std::pair<int, int>>& cables) {
  std::vector<DataNode> nodes;
  for (int i = 0; i < count; ++i) nodes.push_back({node(i), "mac" + std::to_string(i)});
  for (size_t cable = 0; cable < cables.size(); ++cable) {
    const auto [low, high] = cables[cable];
    const auto number = static_cast<int>(cable);
    nodes[static_cast<size_t>(low)].addresses.push_back({cable_host(number, 0), 30});
    nodes[static_cast<size_t>(high)].addresses.push_back({cable_host(number, 1), 30});
  }
  return nodes;
}

// All pairs, and both ends of each find the same paths.
void check_mesh(int count, const DataNetworks& given) {
  std::vector<std::pair<int, int>> cables;
  for (int low = 0; low < count; ++low) {
    for (int high = low + 1; high < count; ++high) cables.emplace_back(low, high);
  }
  const std::vector<DataNode> nodes = cabled(count, cables);
  for (size_t cable = 0; cable < cables.size(); ++cable) {
    CAPTURE(cable);
    const DataNode& low = nodes[static_cast<size_t>(cables[cable].first)];
    const DataNode& high = nodes[static_cast<size_t>(cables[cable].second)];
    const auto number = static_cast<int>(cable);
    const std::string a = cable_host(number, 0), b = cable_host(number, 1);
    CHECK(paths_between(given, low, high, no_way) == DataPaths{{{a, b}}, ""});
    CHECK(paths_between(given, high, low, no_way) == DataPaths{{{b, a}}, ""});
  }
}

}  // namespace

TEST_CASE("in a mesh of three and of four, each pair uses the cable between the two") {
  for (const int count : {3, 4}) {
    CAPTURE(count);
    check_mesh(count, given_networks({"10.86.12.0/24"}));
    check_mesh(count, given_networks({"10.86.12.0/30,10.86.12.4/30,10.86.12.8/30", "10.86.12.12/30",
                                      "10.86.12.16/30", "10.86.12.20/30"}));
  }
}

TEST_CASE("in a ring of four, pairs without a cable have a sentence, and the others their cable") {
  const auto nodes = cabled(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}});
  const DataNetworks given = given_networks({"10.86.12.0/24"});
  CHECK(paths_between(given, nodes[3], nodes[0], no_way).paths ==
        std::vector<DataPath>{{"10.86.12.13", "10.86.12.14"}});
  const DataPaths missing = paths_between(given, nodes[2], nodes[0], no_way);
  CHECK(missing.paths.empty());
  CHECK(missing.note ==
        "mac0 and mac2 have no data network in common: join the two with a cable, give both its "
        "ends addresses in one network, and name that in --data-network on both");
  CHECK(paths_between(given, nodes[0], nodes[2], no_way) == missing);
  // The default route leads to the other's address, but from the network of the nodes.
  const auto by_default = [](const std::string&) { return std::string("192.168.1.5"); };
  CHECK(paths_between(given, nodes[0], nodes[2], by_default) == missing);
}

TEST_CASE("a node without addresses for links is named, and two of them miss nothing") {
  const DataNode with{node(1), "anna", {{"10.9.0.1", 24}}}, without{node(2), "berta"};
  const DataNetworks given = given_networks({"10.9.0.0/24"});
  const std::string note =
      "berta has no address in a data network: give it one, and start it with --data-network too";
  CHECK(paths_between(given, with, without, no_way) == DataPaths{{}, note});
  CHECK(paths_between({}, without, with, no_way) == DataPaths{{}, note});
  CHECK(paths_between({}, without, {node(3), "carla"}, no_way) == DataPaths{});
}

TEST_CASE("machines in one network reach each other there, over IPv4 and IPv6") {
  const DataNode anna{node(1), "anna", {{"10.9.0.1", 24}, {"fd00:9::1", 64}}};
  const DataNode berta{node(2), "berta", {{"10.9.0.2", 24}, {"fd00:9::2", 64}}};
  const DataNetworks given = given_networks({"10.9.0.0/24", "fd00:9::/64"});
  CHECK(paths_between(given, berta, anna, no_way) ==
        DataPaths{{{"10.9.0.2", "10.9.0.1"}, {"fd00:9::2", "fd00:9::1"}}, ""});
}

TEST_CASE("of several shared networks both nodes have the order of the one with the smaller id") {
  const DataNode anna{node(1), "anna", {{"10.1.0.1", 24}, {"10.2.0.1", 24}}};
  const DataNode berta{node(2), "berta", {{"10.2.0.2", 24}, {"10.1.0.2", 24}}};
  const DataNetworks given = given_networks({"10.0.0.0/8"});
  CHECK(paths_between(given, anna, berta, no_way).paths ==
        std::vector<DataPath>{{"10.1.0.1", "10.1.0.2"}, {"10.2.0.1", "10.2.0.2"}});
  CHECK(paths_between(given, berta, anna, no_way).paths ==
        std::vector<DataPath>{{"10.1.0.2", "10.1.0.1"}, {"10.2.0.2", "10.2.0.1"}});
}

TEST_CASE("of overlapping networks the cable's is not taken for the larger one around it") {
  const DataNode anna{node(1), "anna", {{"10.9.0.1", 16}, {"10.9.4.1", 30}}};
  const DataNode berta{node(2), "berta", {{"10.9.0.2", 16}, {"10.9.4.2", 30}}};
  CHECK(paths_between(given_networks({"10.9.0.0/16"}), anna, berta, no_way).paths ==
        std::vector<DataPath>{{"10.9.0.1", "10.9.0.2"}, {"10.9.4.1", "10.9.4.2"}});
  CHECK(are_neighbours({"10.9.0.1", 16}, {"10.9.4.2", 16}));
  CHECK(!are_neighbours({"10.9.0.1", 16}, {"10.9.4.2", 30}));
  CHECK(!are_neighbours({"10.9.4.1", 30}, {"10.9.4.5", 30}));
  CHECK(!are_neighbours({"fe80::1%en1", 64}, {"fe80::2%en1", 64}));
  CHECK(!are_neighbours({"10.9.0.1", 16}, {"anna", 16}));
}

TEST_CASE("machines that a router joins use the addresses between which there is a route") {
  const DataNode anna{node(1), "anna", {{"10.9.1.1", 24}}};
  const DataNode berta{node(2), "berta", {{"10.9.2.1", 24}}};
  const auto towards = [](const std::string& host) {
    return std::string(host == "10.9.2.1" ? "10.9.1.1" : "10.9.2.1");
  };
  CHECK(paths_between(given_networks({"10.9.0.0/16"}), anna, berta, towards).paths ==
        std::vector<DataPath>{{"10.9.1.1", "10.9.2.1"}});
  // Not if no network of the flag contains both.
  CHECK(paths_between(given_networks({"10.9.1.0/24"}), anna, berta, towards).paths.empty());
}

TEST_CASE("the network whose RDMA ports are up at both ends comes first, then the order") {
  const DataPaths paths{{{"10.1.0.1", "10.1.0.2"}, {"10.2.0.1", "10.2.0.2"}}, ""};
  const std::vector<std::string> none, first{"10.1.0.1"}, own{"10.2.0.1", "10.1.0.1"};
  const std::vector<std::string> peer{"10.2.0.2"};
  CHECK(*best_path(paths, own, peer) == paths.paths[1]);
  CHECK(*best_path(paths, first, peer) == paths.paths[0]);
  CHECK(*best_path(paths, own, none) == paths.paths[0]);
  CHECK(*best_path(paths, none, none) == paths.paths[0]);
  CHECK(best_path({{}, "why"}, own, peer) == nullptr);
}

TEST_CASE("the paths to all ranks arrive at a worker unchanged, or are refused") {
  const std::vector<DataPaths> ranks{{}, {{{"10.1.0.1", "fd00::2"}}, ""}, {{}, "a \"reason\""}};
  CHECK(decode_data_paths(encode_data_paths(ranks)).value() == ranks);
  for (const char* text : {"", "{}", "[1]", R"([{"paths":[]}])", R"([{"paths":[1],"note":""}])",
                           R"([{"paths":[{"own":"a"}],"note":""}])"}) {
    CAPTURE(text);
    CHECK(!decode_data_paths(text).ok());
  }
  const std::vector<DataPaths> many{{std::vector<DataPath>(kDataAddressesMax + 1), ""}};
  CHECK(!decode_data_paths(encode_data_paths(many)).ok());
}
