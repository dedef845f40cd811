// LinkGraph: which ranks of a group have a link with each other, as every rank knows it. What a
// plan of an exchange is made from. A value; everything here is a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/topology.h"

namespace lockstep {

class LinkGraph {
 public:
  static constexpr int kRanksMax = 64;  // a set of ranks is a word

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

  // The ranks that messages of `from` can reach, itself among them.
  uint64_t reached(int from) const;
  // Links on the shortest way from `from`; -1 where there is none.
  std::vector<int> distances(int from) const;
  // The next rank on the shortest way to `root`, of several the smallest; of `root` itself: root.
  std::vector<int> parents(int root) const;
  // The rank whose farthest rank is nearest.
  int centre() const;
  int diameter() const;
  // All ranks in an order in which neighbours have links, the last and the first too. Empty if a
  // search with a limit has found none.
  std::vector<int> ring() const;

 private:
  std::vector<uint64_t> joined_;
};

}  // namespace lockstep
