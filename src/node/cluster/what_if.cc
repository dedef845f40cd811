#include "node/cluster/what_if.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "node/cluster/cluster_plan.h"
#include "planner/facts/measured_machine.h"
#include "planner/profiles/profiles.h"

namespace lockstep {
namespace {

// Little, since models may run on this machine meanwhile.
constexpr uint64_t kOwnProbeBytes = uint64_t{64} << 20;
constexpr size_t kMachineNameBytesMax = 100;

int64_t model_bytes_on(const ClusterReport& report, std::string_view model, const NodeId& node) {
  int64_t bytes = 0;
  for (const ClusterModelReport& one : report.models) {
    if (one.entry.name != model) continue;
    for (const ClusterGroupReport& group : one.groups) {
      for (const RankPart& rank : group.plan.ranks) {
        if (rank.node == node) bytes += rank.bytes;
      }
    }
  }
  return bytes;
}

bool is_shared_name(const std::vector<ClusterNodeReport>& nodes, const ClusterNodeReport& node) {
  return std::count_if(nodes.begin(), nodes.end(),
                       [&](const ClusterNodeReport& other) { return other.name == node.name; }) > 1;
}

Machine machine_of_node(const NodeOffer& offer) {
  return measured_machine(offer.name, static_cast<uint64_t>(offer.free_bytes),
                          {.read_bytes_s = offer.speed, .operations_s = offer.operations_s});
}

// "mac", "mac-2", "mac-3".
std::string unused_name(const std::vector<Machine>& machines, const std::string& wanted) {
  std::string name = wanted;
  const auto is_used = [&](const Machine& machine) { return machine.name == name; };
  for (size_t i = 2; std::any_of(machines.begin(), machines.end(), is_used); ++i) {
    name = fmt::format("{}-{}", wanted, i);
  }
  return name;
}

Result<Machine> added_machine(const AddedMachine& added, const std::vector<Machine>& machines) {
  Machine machine = TRY(machine_profile(added.profile));
  if (added.name.size() > kMachineNameBytesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the name of a machine has at most {} bytes", kMachineNameBytesMax)};
  }
  if (added.name.empty()) {
    machine.name = unused_name(machines, added.profile);
    return machine;
  }
  machine.name = unused_name(machines, added.name);
  if (machine.name == added.name) return machine;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("two machines are called {}; give each another name", added.name)};
}

// Two machines that have different links to the others: each figure of the slower.
LinkFigures slower(const LinkFigures& a, const LinkFigures& b) {
  return {.kind = a.kind == b.kind ? a.kind : LinkKind::kTcp,
          .latency_us = std::max(a.latency_us, b.latency_us),
          .bytes_per_us = std::min(a.bytes_per_us, b.bytes_per_us)};
}

Result<LinkFigures> link_of_added(const AddedMachine& added) {
  if (added.link.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the added machine {} needs a \"link\" to the others", added.profile)};
  }
  return link_profile(added.link);
}

}  // namespace

std::vector<NodeOffer> offers_for(const ClusterReport& report, std::string_view model) {
  std::vector<NodeOffer> offers;
  for (const ClusterNodeReport& node : report.nodes) {
    if (node.state != "alive") continue;
    const int64_t free =
        node.budget_bytes - node.promised_bytes + model_bytes_on(report, model, node.id);
    offers.push_back(
        {.node = node.id,
         .name = node_name_text(node.id, node.name, is_shared_name(report.nodes, node)),
         .free_bytes = std::clamp<int64_t>(free, 0, std::max<int64_t>(0, node.budget_bytes)),
         .speed = node.read_bytes_s,
         .operations_s = node.operations_s,
         .link_bytes_s = node.link_bytes_s,
         .round_trips = node.round_trips});
  }
  return offers;
}

Result<ClusterFacts> what_if(std::span<const NodeOffer> nodes,
                             std::span<const AddedMachine> added) {
  const size_t count = nodes.size() + added.size();
  if (count == 0 || count > kPlannedMachinesMax) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a plan is made for 1 to {} machines, not {}", kPlannedMachinesMax, count)};
  }
  std::vector<Machine> machines;
  for (const NodeOffer& node : nodes) machines.push_back(machine_of_node(node));
  std::vector<LinkFigures> links;
  for (const AddedMachine& one : added) {
    machines.push_back(TRY(added_machine(one, machines)));
    links.push_back(count > 1 ? TRY(link_of_added(one)) : LinkFigures{});
  }
  std::vector<std::optional<LinkFigures>> direct(count * count);
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = 0; b < a; ++b) {
      const size_t n = nodes.size();
      const LinkFigures link = a < n   ? link_between(nodes[a], nodes[b])
                               : b < n ? links[a - n]
                                       : slower(links[a - n], links[b - n]);
      direct[a * count + b] = direct[b * count + a] = link;
    }
  }
  return ClusterFacts{std::move(machines), LinkTable(count, std::move(direct))};
}

Result<NodeOffer> OwnOffer::get(const std::string& name) {
  if (known_) {
    NodeOffer offer = *known_;
    offer.name = name;
    return offer;
  }
  const auto budget = default_budget_bytes();
  if (!budget) {
    return Error{ErrorCode::kUnsupported, "this system does not say how much memory is free"};
  }
  const std::lock_guard lock(mutex_);
  if (!measured_) {
    const MeasuredSpeed speed = TRY(measure_this_machine(kOwnProbeBytes));
    measured_ =
        NodeOffer{.node = {}, .speed = speed.read_bytes_s, .operations_s = speed.operations_s};
  }
  NodeOffer offer = *measured_;
  offer.name = name;
  offer.free_bytes = static_cast<int64_t>(*budget);
  return offer;
}

}  // namespace lockstep
