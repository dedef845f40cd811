#include "planner/partition.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/check.h"

namespace lockstep {
namespace {

double memory_of(const ClusterFacts& cluster, const MachineOrder& machines) {
  double bytes = 0;
  for (const size_t machine : machines) {
    bytes += static_cast<double>(cluster.machines[machine].memory_bytes);
  }
  return bytes;
}

// The largest remaining machine goes to the smallest group: of N groups the smallest has at least
// 3/4 of what is possible (Deuermeyer, Friesen and Langston 1982).
MachineGroups by_memory(const ClusterFacts& cluster, size_t count) {
  MachineOrder order(cluster.machines.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return cluster.machines[a].memory_bytes > cluster.machines[b].memory_bytes;
  });
  MachineGroups groups(count);
  std::vector<double> memory(count, 0.0);
  for (const size_t machine : order) {
    const auto least =
        static_cast<size_t>(std::min_element(memory.begin(), memory.end()) - memory.begin());
    // Each group gets a machine, even if machines have no memory.
    const auto empty = std::find_if(groups.begin(), groups.end(),
                                    [](const MachineOrder& group) { return group.empty(); });
    const size_t chosen =
        empty != groups.end() ? static_cast<size_t>(empty - groups.begin()) : least;
    groups[chosen].push_back(machine);
    memory[chosen] += static_cast<double>(cluster.machines[machine].memory_bytes);
  }
  return groups;
}

// Neighbours in an order, cut so that each group has about the same memory.
MachineGroups by_nearness(const ClusterFacts& cluster, const MachineOrder& order, size_t count) {
  MachineGroups groups(1);
  double left = memory_of(cluster, order), own = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t groups_left = count - groups.size();  // after this one
    const auto bytes = static_cast<double>(cluster.machines[order[i]].memory_bytes);
    const double wanted = (own + left) / static_cast<double>(groups_left + 1);
    const bool is_full = own + bytes / 2 > wanted || order.size() - i <= groups_left;
    if (groups_left > 0 && !groups.back().empty() && is_full) {
      groups.emplace_back();
      own = 0;
    }
    groups.back().push_back(order[i]);
    own += bytes;
    left -= bytes;
  }
  return groups;
}

}  // namespace

MachineOrder nearest_order(const ClusterFacts& cluster, size_t seed) {
  MachineOrder order{seed};
  std::vector<bool> is_taken(cluster.machines.size(), false);
  is_taken[seed] = true;
  while (order.size() < cluster.machines.size()) {
    std::optional<size_t> next;
    double least = 0;
    for (size_t i = 0; i < is_taken.size(); ++i) {
      const auto& way = cluster.links.between(order.back(), i);
      if (is_taken[i] || !way || (next && way->latency_us >= least)) continue;
      next = i;
      least = way->latency_us;
    }
    if (!next) break;
    order.push_back(*next);
    is_taken[*next] = true;
  }
  return order;
}

std::vector<MachineGroups> partitions(const ClusterFacts& cluster, size_t count) {
  LOCKSTEP_CHECK(count > 0 && count <= cluster.machines.size());
  std::vector<MachineGroups> found{by_memory(cluster, count)};
  if (!cluster.links.is_uniform()) {
    const MachineOrder order = nearest_order(cluster, 0);
    if (order.size() >= count) found.push_back(by_nearness(cluster, order, count));
  }
  for (MachineGroups& groups : found) {
    std::stable_sort(groups.begin(), groups.end(),
                     [&](const MachineOrder& a, const MachineOrder& b) {
                       return memory_of(cluster, a) < memory_of(cluster, b);
                     });
  }
  return found;
}

}  // namespace lockstep
