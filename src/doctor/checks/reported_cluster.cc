#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "doctor/checks/cluster_checks.h"

namespace lockstep {
namespace {

// Items read of each list from a node; the rest is ignored.
constexpr size_t kListedMax = 1024;

std::string text(const Json& object, std::string_view key) {
  const auto value = get_string(object, key);
  return value.ok() ? value.value().value_or("") : "";
}

double real(const Json& object, std::string_view key) {
  const auto value = get_double(object, key);
  return value.ok() ? value.value().value_or(0) : 0;
}

std::span<const Json> list(const Json& object, std::string_view key) {
  const Json* found = find(object, key);
  if (found == nullptr || !found->is_array()) return {};
  return {found->get_array().data(), std::min<size_t>(found->get_array().size(), kListedMax)};
}

bool truth(const Json& object, std::string_view key) {
  const auto value = get_bool(object, key);
  return value.ok() && value.value().value_or(false);
}

std::string first_text(const Json& object, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (std::string found = text(object, key); !found.empty()) return found;
  }
  return "";
}

ClusterNodeFacts node_of(const Json& node) {
  ClusterNodeFacts facts{.name = first_text(node, {"name", "id"}),
                         .version = text(node, "version"),
                         .state = text(node, "state"),
                         .note = text(node, "note"),
                         .is_self = truth(node, "is_self")};
  const auto skew = get_double(node, "clock_skew_s");
  if (skew.ok()) facts.clock_skew_s = skew.value();
  return facts;
}

int64_t rank_in(const Json& object, std::string_view key) {
  const auto number = get_int(object, key);
  return number.ok() ? number.value().value_or(-1) : -1;
}

// The name of the machine of each rank of the reported group; "rank 2" without a placement.
std::string machine_of(const Json& model, int64_t rank) {
  for (const Json& part : list(model, "placement")) {
    if (rank_in(part, "rank") != rank || rank_in(part, "group") != rank_in(model, "group"))
      continue;
    if (std::string name = first_text(part, {"node_name", "node"}); !name.empty()) return name;
  }
  return "rank " + std::to_string(rank);
}

ClusterLinkFacts link_of(const Json& model, const Json& link) {
  return {.a = machine_of(model, rank_in(link, "a")),
          .b = machine_of(model, rank_in(link, "b")),
          .path = text(link, "path"),
          .reason = text(link, "reason"),
          .latency_us = real(link, "p50_us"),
          .gbit_s = real(link, "gbit_s"),
          .a_host = text(link, "a_host"),
          .b_host = text(link, "b_host"),
          .device = text(link, "device"),
          .network_note = text(link, "network_note")};
}

ClusterModelFacts model_of(const Json& model) {
  ClusterModelFacts facts{.name = text(model, "name"),
                          .state = text(model, "state"),
                          .error = first_text(model, {"sentence", "last_error"})};
  for (const Json& rank : list(model, "ranks")) {
    const std::string machine = machine_of(model, rank_in(rank, "rank"));
    if (std::count(facts.machines.begin(), facts.machines.end(), machine) == 0) {
      facts.machines.push_back(machine);
    }
  }
  // Shared memory is not a link between machines, and is faster than all of them.
  for (const Json& link : list(model, "links")) {
    ClusterLinkFacts one = link_of(model, link);
    if (one.a != one.b && one.path != "shm") facts.links.push_back(std::move(one));
  }
  return facts;
}

}  // namespace

ReportedCluster reported_cluster(const Json& status) {
  ReportedCluster facts;
  if (!status.is_object()) return facts;
  facts.answers = true;
  facts.version = text(status, "version");
  facts.beacon_problem = text(status, "beacon_problem");
  if (status.get_object().contains("cluster")) {  // alone, the only node is this one
    for (const Json& node : list(status, "nodes")) facts.nodes.push_back(node_of(node));
  }
  for (const Json& model : list(status, "models")) {
    facts.models.push_back(model_of(model));
  }
  return facts;
}

}  // namespace lockstep
