// For tests that hold in every topology.
#pragma once

#include "transport/topology.h"

namespace lockstep {

inline constexpr Topology kTopologies[] = {Topology::kMesh, Topology::kLine, Topology::kRing,
                                           Topology::kStar};

}  // namespace lockstep
