#include "collective/plan/sum_tree.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

bool is_lone_left(TreeNode node, int leaf_count) {
  return node.index % 2 == 0 && ((node.index + 1) << node.level) >= leaf_count;
}

void rise_while_lone(TreeNode& node, int leaf_count) {
  while ((1 << node.level) < leaf_count && is_lone_left(node, leaf_count)) {
    node = {node.level + 1, node.index / 2};
  }
}

}  // namespace

TreeNode risen(TreeNode node, int leaf_count) {
  rise_while_lone(node, leaf_count);
  return node;
}

bool are_siblings(TreeNode left, TreeNode right) {
  return left.level == right.level && left.index + 1 == right.index && left.index % 2 == 0;
}

TreeNode parent_of(TreeNode left, int leaf_count) {
  return risen({left.level + 1, left.index / 2}, leaf_count);
}

bool is_inside(TreeNode inner, TreeNode outer) {
  return inner.level <= outer.level && inner.index >> (outer.level - inner.level) == outer.index;
}

bool is_root(TreeNode node, int leaf_count) {
  return node.index == 0 && (1 << node.level) >= leaf_count;
}

// Sixteen at a time in a vector type, because -O2 does not vectorise a loop whose arrays may
// overlap.
void add_vectors(const float* left, const float* right, float* sum, size_t count) {
  using Lanes [[gnu::vector_size(64)]] = float;
  constexpr size_t kCount = sizeof(Lanes) / sizeof(float);
  size_t i = 0;
  for (; i + kCount <= count; i += kCount) {
    Lanes a, b;
    std::memcpy(&a, left + i, sizeof(a));
    std::memcpy(&b, right + i, sizeof(b));
    a += b;
    std::memcpy(sum + i, &a, sizeof(a));
  }
  for (; i < count; ++i) sum[i] = left[i] + right[i];
}

std::vector<TreeNode> cover(int begin, int end) {
  std::vector<TreeNode> nodes;
  while (begin < end) {
    int level = 0;
    while (begin % (2 << level) == 0 && begin + (2 << level) <= end) ++level;
    nodes.push_back({level, begin >> level});
    begin += 1 << level;
  }
  return nodes;
}

void add_tree(std::span<PartialSum> parts, int leaf_count) {
  size_t top = 0;  // parts[0, top) is the stack of finished left neighbours
  for (PartialSum part : parts) {
    rise_while_lone(part.node, leaf_count);
    while (top > 0 && are_siblings(parts[top - 1].node, part.node)) {
      PartialSum left = parts[--top];
      for (size_t i = 0; i < left.values.size(); ++i) left.values[i] += part.values[i];
      part = {{left.node.level + 1, left.node.index / 2}, left.values};
      rise_while_lone(part.node, leaf_count);
    }
    parts[top++] = part;
  }
}

void TreeAdder::add(std::span<TreePart> parts, int leaf_count, std::span<float> sum) {
  const size_t count = sum.size();
  size_t top = 0;                         // parts[0, top) is the stack of finished left neighbours
  size_t merges_left = parts.size() - 1;  // the last one is the sum
  for (TreePart part : parts) {
    rise_while_lone(part.node, leaf_count);
    while (top > 0 && are_siblings(parts[top - 1].node, part.node)) {
      const TreePart left = parts[--top];
      // The only value in the scratch of this depth can be `left` itself: adding in place is safe.
      float* result = --merges_left == 0 ? sum.data() : scratch(top, count);
      if (result == left.values && add_) {
        add_(part.values, result, count);
      } else {
        add_vectors(left.values, part.values, result, count);
      }
      part = {{left.node.level + 1, left.node.index / 2}, result};
      rise_while_lone(part.node, leaf_count);
    }
    parts[top++] = part;
  }
  if (parts[0].values != sum.data()) std::copy_n(parts[0].values, count, sum.data());
}

float* TreeAdder::scratch(size_t depth, size_t count) {
  if (scratch_.size() <= depth) scratch_.resize(depth + 1);
  if (scratch_[depth].size() < count) scratch_[depth].resize(count);
  return scratch_[depth].data();
}

}  // namespace lockstep
