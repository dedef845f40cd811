#include "transport/topology.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace lockstep {
namespace {

constexpr std::array<std::pair<Topology, std::string_view>, 4> kNames{{
    {Topology::kMesh, "mesh"},
    {Topology::kLine, "line"},
    {Topology::kRing, "ring"},
    {Topology::kStar, "star"},
}};

}  // namespace

Result<Topology> parse_topology(std::string_view name) {
  for (const auto& [topology, known] : kNames) {
    if (name == known) return topology;
  }
  return Error{ErrorCode::kInvalidArgument,
               "'" + std::string(name) + "' is no topology; there are mesh, line, ring and star"};
}

std::string_view topology_name(Topology topology) {
  for (const auto& [known, name] : kNames) {
    if (topology == known) return name;
  }
  return "";
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
