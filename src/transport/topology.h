// Which pairs of ranks have a direct link. Messages between the others are relayed.
#pragma once

#include <string_view>

#include "base/result.h"

namespace lockstep {

enum class Topology {
  kMesh,  // every pair
  kLine,  // 0 - 1 - 2 - ...
  kRing,  // a line with its ends joined
  kStar,  // 0 with all others
};

Result<Topology> parse_topology(std::string_view name);
std::string_view topology_name(Topology topology);

// Whether ranks `a` and `b` of `size` have a link; false for a == b.
bool is_joined(Topology topology, int size, int a, int b);

}  // namespace lockstep
