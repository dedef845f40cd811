// Runs the ranks of a group as threads over any kind of link.
#pragma once

#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/wait.h"
#include "collective/group/group.h"
#include "support/comes_true.h"
#include "transport/pipe_link.h"

namespace lockstep {

inline constexpr std::chrono::milliseconds kTestTimeout{20'000};

// Calls body(group) in one thread per rank; a rank's group is destroyed after its body.
inline void run_ranks(LocalLinks links, const Group::Options& options,
                      const std::function<void(Group&)>& body) {
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < links.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Group group({.rank = static_cast<int>(rank),
                   .links = std::move(links[rank]),
                   .timeout = options.timeout,
                   .cancelled = options.cancelled,
                   .progress = options.progress,
                   .kernels = options.kernels});
      body(group);
    });
  }
  for (auto& thread : threads) thread.join();
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

inline LeafShares make_shares(const std::vector<int>& leaves) {
  std::vector<int> begins{0};
  for (const int count : leaves) begins.push_back(begins.back() + count);
  return LeafShares(begins);
}

inline std::vector<float> leaf_values(int leaf, size_t count) {
  std::vector<float> values(count);
  std::minstd_rand random(static_cast<unsigned>(leaf + 1));
  for (float& value : values) value = static_cast<float>(random() % 2'000'003) / 997.0f - 1000.0f;
  return values;
}

// The sum of leaves [first, first + count) by their own tree.
inline std::vector<float> tree_sum(int first, int leaf_count, size_t count) {
  std::deque<std::vector<float>> leaves;
  std::vector<PartialSum> parts;
  for (int leaf = 0; leaf < leaf_count; ++leaf) {
    leaves.push_back(leaf_values(first + leaf, count));
    parts.push_back({{0, leaf}, leaves.back()});
  }
  add_tree(parts, leaf_count);
  return leaves.front();
}

// A rank's input to all_reduce.
inline std::vector<float> own_sums(const LeafShares& shares, int rank, size_t count) {
  std::vector<float> own;
  for (const TreeNode node : shares.nodes(rank)) {
    const auto sum = tree_sum(node.index << node.level, 1 << node.level, count);
    own.insert(own.end(), sum.begin(), sum.end());
  }
  return own;
}

}  // namespace lockstep
