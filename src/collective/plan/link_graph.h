// LinkGraph: which ranks of a group have a link with each other; the same on every rank. Plans of
// exchanges are made from it. A value; everything here is a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/topology.h"

namespace lockstep {

class LinkGraph {
 public:
  static constexpr int kRanksMax = 64;  // a set of ranks fits in one word

  LinkGraph() = default;
  // joined[r] has bit p where r has a link to p; symmetric, without loops.
  explicit LinkGraph(std::vector<uint64_t> joined);
  static LinkGraph of(Topology topology, int size);

  int size() const { return static_cast<int>(joined_.size()); }
  uint64_t joined(int rank) const { return joined_[static_cast<size_t>(rank)]; }
  bool has(int a, int b) const { return (joined(a) >> b & 1) != 0; }
  bool is_mesh() const;
  bool is_connected() const { return reached(0) == all(); }
  uint64_t all() const { return size() == kRanksMax ? ~uint64_t{0} : (uint64_t{1} << size()) - 1; }

  // The ranks that messages of `from` can reach, including itself.
  uint64_t reached(int from) const;
  // Links on the shortest path from `from`; -1 if there is none.
  std::vector<int> distances(int from) const;
  // The next rank on the shortest path to `root`, the smallest if several; for `root` itself: root.
  std::vector<int> parents(int root) const;
  // The rank whose farthest rank is nearest.
  int centre() const;
  int diameter() const;
  // All ranks in an order in which neighbours have links, including last and first. Empty if a
  // bounded search finds none.
  std::vector<int> ring() const;

 private:
  std::vector<uint64_t> joined_;
};

}  // namespace lockstep
