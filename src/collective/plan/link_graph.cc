#include "collective/plan/link_graph.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

constexpr int kRingStepsMax = 100'000;  // limits the search, which could take forever

// Extends `order` from its last rank; true once it is a ring.
bool extend_ring(const LinkGraph& graph, std::vector<int>& order, uint64_t used, int& steps) {
  if (used == graph.all()) return graph.has(order.back(), order.front());
  for (int next = 0; next < graph.size(); ++next) {
    if ((used >> next & 1) != 0 || !graph.has(order.back(), next)) continue;
    if (++steps > kRingStepsMax) return false;
    order.push_back(next);
    if (extend_ring(graph, order, used | uint64_t{1} << next, steps)) return true;
    order.pop_back();
  }
  return false;
}

}  // namespace

LinkGraph::LinkGraph(std::vector<uint64_t> joined) : joined_(std::move(joined)) {
  LOCKSTEP_CHECK(size() > 0 && size() <= kRanksMax);
  for (int a = 0; a < size(); ++a) {
    LOCKSTEP_CHECK(!has(a, a) && (this->joined(a) & ~all()) == 0);
    for (int b = 0; b < a; ++b) LOCKSTEP_CHECK(has(a, b) == has(b, a));
  }
}

LinkGraph LinkGraph::of(Topology topology, int size) {
  std::vector<uint64_t> joined(static_cast<size_t>(size));
  for (int a = 0; a < size; ++a) {
    for (int b = 0; b < size; ++b) {
      if (is_joined(topology, size, a, b)) joined[static_cast<size_t>(a)] |= uint64_t{1} << b;
    }
  }
  return LinkGraph(std::move(joined));
}

bool LinkGraph::is_mesh() const {
  for (int rank = 0; rank < size(); ++rank) {
    if (joined(rank) != (all() & ~(uint64_t{1} << rank))) return false;
  }
  return true;
}

uint64_t LinkGraph::reached(int from) const {
  uint64_t reached = uint64_t{1} << from;
  for (uint64_t fresh = reached; fresh != 0;) {
    const int rank = std::countr_zero(fresh);
    fresh &= fresh - 1;
    fresh |= joined(rank) & ~reached;
    reached |= joined(rank);
  }
  return reached;
}

std::vector<int> LinkGraph::distances(int from) const {
  std::vector<int> distances(static_cast<size_t>(size()), -1);
  uint64_t seen = uint64_t{1} << from;
  uint64_t front = seen;
  for (int distance = 0; front != 0; ++distance) {
    uint64_t next = 0;
    for (int rank = 0; rank < size(); ++rank) {
      if ((front >> rank & 1) == 0) continue;
      distances[static_cast<size_t>(rank)] = distance;
      next |= joined(rank);
    }
    front = next & ~seen;
    seen |= next;
  }
  return distances;
}

std::vector<int> LinkGraph::parents(int root) const {
  const std::vector<int> distance = distances(root);
  std::vector<int> parents(distance.size(), root);
  for (int rank = 0; rank < size(); ++rank) {
    for (int peer = size() - 1; peer >= 0; --peer) {
      const bool is_nearer =
          distance[static_cast<size_t>(peer)] + 1 == distance[static_cast<size_t>(rank)];
      if (has(rank, peer) && is_nearer) parents[static_cast<size_t>(rank)] = peer;
    }
  }
  return parents;
}

int LinkGraph::centre() const {
  int centre = 0, least = kRanksMax;
  for (int rank = 0; rank < size(); ++rank) {
    const std::vector<int> distance = distances(rank);
    const int farthest = *std::max_element(distance.begin(), distance.end());
    if (farthest < least) least = farthest, centre = rank;
  }
  return centre;
}

int LinkGraph::diameter() const {
  int diameter = 0;
  for (int rank = 0; rank < size(); ++rank) {
    const std::vector<int> distance = distances(rank);
    diameter = std::max(diameter, *std::max_element(distance.begin(), distance.end()));
  }
  return diameter;
}

std::vector<int> LinkGraph::ring() const {
  std::vector<int> order{0};
  int steps = 0;
  if (size() < 3 || !extend_ring(*this, order, 1, steps)) return {};
  return order;
}

}  // namespace lockstep
