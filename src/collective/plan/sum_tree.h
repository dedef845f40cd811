// A sum whose bits do not depend on who computed which part. The cut dimension has a fixed
// number of leaves; leaf sums are added in one binary tree. A rank owns a range of leaves, adds
// the complete subtrees inside it, and sends one vector for each of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep {

struct TreeNode {
  int level = 0;  // 0 is a leaf
  int index = 0;  // leaves [index << level, (index + 1) << level)

  bool operator==(const TreeNode&) const = default;
};

// The fewest complete subtrees that cover leaves [begin, end), left to right.
std::vector<TreeNode> cover(int begin, int end);

// The node itself, or its ancestor as long as it has no right sibling: equal sums have equal nodes.
TreeNode risen(TreeNode node, int leaf_count);
bool are_siblings(TreeNode left, TreeNode right);
// The sum of `left` and its right sibling, risen.
TreeNode parent_of(TreeNode left, int leaf_count);
bool is_inside(TreeNode inner, TreeNode outer);  // also if both are the same
bool is_root(TreeNode node, int leaf_count);

// sum[i] = left[i] + right[i]; `sum` may be one of them, memory need not be aligned.
void add_vectors(const float* left, const float* right, float* sum, size_t count);

struct PartialSum {
  TreeNode node;
  std::span<float> values;  // overwritten while summing
};

// Adds `parts`, which cover leaves [0, leaf_count) left to right, into parts[0].values.
// leaf_count need not be a power of two: a node without a right sibling rises unchanged.
void add_tree(std::span<PartialSum> parts, int leaf_count);

// The same for read-only vectors such as frames of a link, without copying them first.
struct TreePart {
  TreeNode node;
  const float* values;
};

class TreeAdder {
 public:
  using Add = void (*)(const float* x, float* sum, size_t count);

  // `add` is the kernels' (sum[i] += x[i]); null means a plain loop with the same bits.
  explicit TreeAdder(Add add) : add_(add) {}

  // Adds `parts`, which cover leaves [0, leaf_count) left to right, into `sum`, which may be the
  // memory of one of the parts. The parts' nodes are used up.
  void add(std::span<TreePart> parts, int leaf_count, std::span<float> sum);

 private:
  float* scratch(size_t depth, size_t count);

  Add add_;
  std::vector<std::vector<float>> scratch_;  // one for each depth of the stack of unfinished sums
};

}  // namespace lockstep
