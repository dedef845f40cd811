#include "transport/topology.h"

#include <algorithm>

#include "base/named_values.h"

namespace lockstep {
namespace {

constexpr NamedValues<Topology, 4> kTopologyNames{{
    {Topology::kMesh, "mesh"},
    {Topology::kLine, "line"},
    {Topology::kRing, "ring"},
    {Topology::kStar, "star"},
}};

}  // namespace

Result<Topology> parse_topology(std::string_view name) {
  return value_named(kTopologyNames, name, "topology");
}

std::string_view topology_name(Topology topology) {
  return name_in(kTopologyNames, topology);
}

bool is_joined(Topology topology, int size, int a, int b) {
  const int low = std::min(a, b), high = std::max(a, b);
  if (low == high) return false;
  switch (topology) {
    case Topology::kMesh:
      return true;
    case Topology::kLine:
      return high - low == 1;
    case Topology::kRing:
      return high - low == 1 || (low == 0 && high == size - 1);
    case Topology::kStar:
      return low == 0;
  }
  return false;
}

}  // namespace lockstep
