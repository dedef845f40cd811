// Which placements serve a model now, one for each of its groups, as far as this node knows: from
// what nodes say of their own parts, so that it holds while the coordinator is lost or changes.
// Loop's thread, like the Brain.
#pragma once

#include <string_view>
#include <vector>

#include "cluster/brain.h"

namespace lockstep {

struct ServingPlacement {
  PlacementEpoch epoch;
  NodeId owner;  // the node of rank 0, which takes requests
  RankPlan plan;

  bool operator==(const ServingPlacement&) const = default;
};

// Those whose owner, which is alive, says that its part is ready; of more than `groups` the highest
// epochs. The oldest first.
std::vector<ServingPlacement> serving_placements(const Brain& brain, const NodeId& self,
                                                 std::string_view model, size_t groups);

}  // namespace lockstep
