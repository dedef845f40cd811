// How the leaves of a cut dimension are shared out over ranks of unequal speed and memory. Pure
// arithmetic, for the planner.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace lockstep {

struct RankWish {
  double speed = 1;     // in any unit
  double part_max = 1;  // of all leaves, that its memory can hold
};

// A rank sends one vector for each complete subtree of the sum tree among its leaves; where it
// costs no more than this, each has at most kSubtreesMax.
inline constexpr int kSubtreesMax = 2;
inline constexpr double kSubtreeCostMax = 1.03;

// Made once for a number of leaves, and asked often: what it knows of the tree takes longer to
// count than most answers.
class LeafDealer {
 public:
  explicit LeafDealer(int leaves);
  int leaves() const { return leaves_; }

  // Leaves of each rank, neighbours in order, so that the slowest rank is as fast as can be; at
  // least one for each where there are enough. Nothing where the memory of all does not suffice.
  std::optional<std::vector<int>> of(std::span<const RankWish> ranks) const;

 private:
  int leaves_;
  std::vector<int> subtrees_;  // (leaves + 1, leaves + 1): complete subtrees of [begin, end)
};

}  // namespace lockstep
