// Which placement serves a model now, as far as this node knows: from what nodes say of their own
// parts, so that it holds while the coordinator is lost or changes. Loop's thread, like the Brain.
#pragma once

#include <optional>
#include <string_view>

#include "cluster/brain.h"

namespace lockstep {

struct ServingPlacement {
  PlacementEpoch epoch;
  NodeId owner;  // the node of rank 0, which takes requests
  RankPlan plan;

  bool operator==(const ServingPlacement&) const = default;
};

// The owner, which is alive, says that its part is ready; of several the highest epoch.
std::optional<ServingPlacement> serving_placement(const Brain& brain, const NodeId& self,
                                                  std::string_view model);

}  // namespace lockstep
