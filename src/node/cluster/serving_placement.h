// The placements that serve a model now, one per group, as far as this node knows: from what nodes
// report of their own parts, so it works while the coordinator is lost or changes. Loop's thread,
// like the Brain.
#pragma once

#include <vector>

#include "cluster/brain/brain.h"

namespace lockstep {

struct ServingPlacement {
  PlacementEpoch epoch;
  NodeId owner;  // the node of rank 0, which takes requests
  RankPlan plan;

  bool operator==(const ServingPlacement&) const = default;
};

// Those made for this entry as it is (placement_key()) whose owner is alive and reports that its
// part is ready; if more than `groups`, the ones with the highest epochs. Oldest first.
std::vector<ServingPlacement> serving_placements(const Brain& brain, const NodeId& self,
                                                 const DesiredEntry& entry, size_t groups);

}  // namespace lockstep
