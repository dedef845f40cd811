#include "cli/client/restart_watch.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <string>
#include <vector>

using namespace lockstep;

namespace {

const std::string kAnna(64, 'a'), kBerta(64, 'b'), kClara(64, 'c');

std::string node_text(const std::string& id, const std::string& name, const std::string& life,
                      const std::string& state, const std::string& more = "") {
  return fmt::format(R"({{"id":"{}","name":"{}","life":"{}","state":"{}"{}}})", id, name, life,
                     state, more);
}

Json status_of_nodes(const std::vector<std::string>& nodes, const std::string& models = "") {
  std::string list;
  for (const std::string& node : nodes) list += (list.empty() ? "" : ",") + node;
  auto parsed = parse_json(fmt::format(R"({{"nodes":[{}],"models":[{}]}})", list, models));
  REQUIRE(parsed.ok());
  return std::move(parsed.value());
}

Json three_nodes(const std::string& models = "") {
  return status_of_nodes({node_text(kAnna, "anna", "1", "alive", R"(,"is_self":true)"),
                          node_text(kBerta, "berta", "2", "alive", R"(,"is_coordinator":true)"),
                          node_text(kClara, "", "3", "suspect")},
                         models);
}

std::vector<std::string> names_of(const std::vector<NodeToRestart>& nodes) {
  std::vector<std::string> names;
  for (const NodeToRestart& node : nodes) names.push_back(node.name);
  return names;
}

constexpr const char* kModels =
    R"({"name":"m","phase":"ready","state":"ready","wanted":{"idle_unload_s":0}},)"
    R"({"name":"on-demand","phase":"ready","state":"ready","wanted":{"idle_unload_s":60}},)"
    R"({"name":"large","phase":"waiting","state":"waiting","wanted":{"idle_unload_s":0}})";

}  // namespace

TEST_CASE("all nodes restart in turn, the one that answers last") {
  const auto all = nodes_to_restart(three_nodes(), {});
  REQUIRE(all.ok());
  CHECK(names_of(all.value()) == std::vector<std::string>{"cccccccc", "berta", "anna"});
  CHECK(all.value()[0].life == "3");
  CHECK(all.value()[2].is_self);
  const auto named = nodes_to_restart(three_nodes(), {"anna", "cccccccc", "anna"});
  REQUIRE(named.ok());
  CHECK(names_of(named.value()) == std::vector<std::string>{"cccccccc", "anna"});
}

TEST_CASE("an absent node is skipped, and an absent or ambiguous name is refused") {
  const Json status = status_of_nodes({node_text(kAnna, "anna", "1", "alive"),
                                       node_text(kBerta, "berta", "2", "dead"),
                                       node_text(kClara, "anna", "3", "alive")});
  CHECK(nodes_to_restart(status, {}).value().size() == 2);
  const auto away = nodes_to_restart(status, {"berta"});
  REQUIRE(!away.ok());
  CHECK(away.error().message == "berta does not answer: start it on its own machine");
  const auto unknown = nodes_to_restart(status, {"dora"});
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().message == "there is no node dora; the nodes are anna, berta, anna");
  const auto two = nodes_to_restart(status, {"anna"});
  REQUIRE(!two.ok());
  CHECK(two.error().message ==
        "several nodes are named anna: write the first 8 digits of the id of one");
  CHECK(!nodes_to_restart(status, {"aaaa"}).ok());  // too few digits
}

TEST_CASE("a node is back in a new incarnation once all its models are ready again") {
  const std::vector<std::string> models = ready_models(three_nodes(kModels));
  CHECK(models == std::vector<std::string>{"m"});
  const NodeToRestart berta{.id = kBerta, .name = "berta", .life = "2"};
  const auto missing = [&](const std::string& life, const std::string& state,
                           const std::string& served) {
    return missing_after_restart(status_of_nodes({node_text(kBerta, "berta", life, state)}, served),
                                 berta, models);
  };
  CHECK(missing("2", "alive", kModels) == "its requests are finishing");
  CHECK(missing("2", "dead", kModels) == "it is away");
  CHECK(missing("4", "alive", "") == "m is not ready");
  CHECK(missing("4", "suspect", kModels) == std::nullopt);
  CHECK(missing_after_restart(status_of_nodes({}), berta, models) == "it is away");
}

TEST_CASE("the next node waits until as many groups of a model are ready as before") {
  const auto with_groups = [](const std::string& life, const std::string& groups) {
    return status_of_nodes(
        {node_text(kAnna, "anna", life, "alive")},
        R"({"name":"m","phase":"ready","state":"ready","groups":[)" + groups + "]}");
  };
  const std::string ready = R"({"phase":"ready"})", loading = R"({"phase":"loading"})";
  const Json before = with_groups("1", ready + "," + ready + "," + loading);
  const auto models = ready_models(before);
  CHECK(models == std::vector<std::string>{"m", "m"});
  const NodeToRestart anna = nodes_to_restart(before, {}).value().front();
  CHECK(missing_after_restart(with_groups("2", ready + "," + loading), anna, models) ==
        "m has 1 of 2 groups");
  CHECK(missing_after_restart(with_groups("2", ready + "," + ready), anna, models) == std::nullopt);
}
