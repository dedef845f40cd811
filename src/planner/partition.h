// How machines can be divided into groups that each hold a whole model. A few ways, all of which a
// planner tries: by memory, so that the smallest group has as much as possible, and by distance, so
// that machines of one group have fast links. Pure, in polynomial time.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/facts/cluster_facts.h"

namespace lockstep {

using MachineOrder = std::vector<size_t>;  // indices of ClusterFacts::machines

// From `seed` on, always the machine nearest to the last one; unreachable ones are left out.
MachineOrder nearest_order(const ClusterFacts& cluster, size_t seed);

// `count` groups of at least one machine each, the one with the least memory first; at most one per
// machine.
using MachineGroups = std::vector<MachineOrder>;
std::vector<MachineGroups> partitions(const ClusterFacts& cluster, size_t count);

}  // namespace lockstep
