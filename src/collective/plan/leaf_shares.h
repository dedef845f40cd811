// LeafShares: how the leaves of one cut dimension are divided among the ranks.
#pragma once

#include <span>
#include <vector>

#include "collective/plan/sum_tree.h"

namespace lockstep {

// Rank r owns leaves [begins[r], begins[r + 1]).
class LeafShares {
 public:
  explicit LeafShares(std::vector<int> begins);

  int rank_count() const { return static_cast<int>(nodes_.size()); }
  int leaf_count() const { return begins_.back(); }
  int begin(int rank) const { return begins_[static_cast<size_t>(rank)]; }
  int end(int rank) const { return begins_[static_cast<size_t>(rank) + 1]; }
  // The complete subtrees of a rank, left to right; empty if it has no leaves.
  std::span<const TreeNode> nodes(int rank) const { return nodes_[static_cast<size_t>(rank)]; }
  int node_count() const { return node_count_; }  // of all ranks

  bool operator==(const LeafShares& other) const { return begins_ == other.begins_; }

 private:
  std::vector<int> begins_;
  std::vector<std::vector<TreeNode>> nodes_;
  int node_count_ = 0;
};

}  // namespace lockstep
