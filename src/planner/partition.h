// How machines can be divided into groups that each hold a whole model. A few ways, of which a
// planner tries all: by memory, so that the group with the least has as much as possible, and by
// nearness, so that machines of one group have fast links. Pure, in polynomial time.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/cluster_facts.h"

namespace lockstep {

using MachineOrder = std::vector<size_t>;  // indices of ClusterFacts::machines

// From `seed` always on to the machine that is nearest to the last one; those that cannot be
// reached are left out.
MachineOrder nearest_order(const ClusterFacts& cluster, size_t seed);

// `count` groups of at least one machine each, the one with the least memory first; no more than
// there are machines.
using MachineGroups = std::vector<MachineOrder>;
std::vector<MachineGroups> partitions(const ClusterFacts& cluster, size_t count);

}  // namespace lockstep
