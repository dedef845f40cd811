// How the leaves of a cut dimension are divided among ranks of unequal speed and memory. Pure
// arithmetic, for the planner.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace lockstep {

struct RankWish {
  double speed = 1;     // in any unit
  double part_max = 1;  // fraction of all leaves that fits in its memory
};

// A rank sends one vector for each complete subtree of the sum tree among its leaves: at most
// kSubtreesMax, unless that makes the slowest rank slower by more than kSubtreeCostMax.
inline constexpr int kSubtreesMax = 2;
inline constexpr double kSubtreeCostMax = 1.03;

// Made once per number of leaves and used often: counting the subtrees of the tree takes longer
// than most answers.
class LeafDealer {
 public:
  explicit LeafDealer(int leaves);
  int leaves() const { return leaves_; }

  // The number of contiguous leaves of each rank, in order, so that the slowest rank is as fast as
  // possible; at least one each if there are enough. Empty if the memory of all does not suffice.
  std::optional<std::vector<int>> of(std::span<const RankWish> ranks) const;

 private:
  int leaves_;
  std::vector<int> subtrees_;  // (leaves + 1, leaves + 1): complete subtrees of [begin, end)
};

}  // namespace lockstep
