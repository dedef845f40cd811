#include "planner/shares.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace lockstep {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Cost {
  double slowest = kNever;
  int subtrees = 0;

  bool operator<(const Cost& other) const {
    return slowest != other.slowest ? slowest < other.slowest : subtrees < other.subtrees;
  }
};

struct Way {
  Cost cost;
  std::vector<int> leaves;  // of each rank
};

// The number of subtrees in cover() of collective/plan/sum_tree.h, without building them.
int subtree_count(size_t begin, size_t end) {
  int count = 0;
  for (; begin < end; ++count) {
    const size_t fits = std::bit_floor(end - begin);
    begin += begin == 0 ? fits : std::min(fits, size_t{1} << std::countr_zero(begin));
  }
  return count;
}

std::vector<int> subtree_counts(int leaves) {
  const auto size = static_cast<size_t>(leaves) + 1;
  std::vector<int> counts(size * size, 0);
  for (size_t begin = 0; begin < size; ++begin) {
    for (size_t end = begin + 1; end < size; ++end) {
      counts[begin * size + end] = subtree_count(begin, end);
    }
  }
  return counts;
}

// The best borders between ranks if none may have more than `subtrees_max` subtrees: the least cost
// of the first ranks for every border, rank by rank.
Way best_way(int leaves, std::span<const RankWish> ranks, std::span<const int> counts,
             int subtrees_max) {
  const auto size = static_cast<size_t>(leaves) + 1;
  const size_t least = static_cast<size_t>(leaves) >= ranks.size() ? 1 : 0;
  std::vector<Cost> before(size), after(size);
  std::vector<std::vector<size_t>> from(ranks.size(), std::vector<size_t>(size, 0));
  before[0] = {0, 0};
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    std::fill(after.begin(), after.end(), Cost{});
    const double room = std::floor(ranks[rank].part_max * leaves);
    for (size_t begin = 0; begin < size; ++begin) {
      if (before[begin].slowest == kNever) continue;
      for (size_t end = begin + least; end < size; ++end) {
        const auto own = static_cast<double>(end - begin);
        const int subtrees = counts[begin * size + end];
        if (own > room || subtrees > subtrees_max) continue;
        const Cost cost{std::max(before[begin].slowest, own / ranks[rank].speed),
                        before[begin].subtrees + subtrees};
        if (!(cost < after[end])) continue;
        after[end] = cost;
        from[rank][end] = begin;
      }
    }
    std::swap(before, after);
  }
  Way way{before[size - 1], std::vector<int>(ranks.size())};
  size_t end = size - 1;
  for (size_t rank = ranks.size(); rank-- > 0 && way.cost.slowest < kNever;) {
    way.leaves[rank] = static_cast<int>(end - from[rank][end]);
    end = from[rank][end];
  }
  return way;
}

}  // namespace

LeafDealer::LeafDealer(int leaves) : leaves_(leaves) {
  LOCKSTEP_CHECK(leaves > 0);
  subtrees_ = subtree_counts(leaves);
}

std::optional<std::vector<int>> LeafDealer::of(std::span<const RankWish> ranks) const {
  LOCKSTEP_CHECK(!ranks.empty());
  const Way free = best_way(leaves_, ranks, subtrees_, leaves_);
  if (free.cost.slowest == kNever) return std::nullopt;
  const Way neat = best_way(leaves_, ranks, subtrees_, kSubtreesMax);
  return neat.cost.slowest <= free.cost.slowest * kSubtreeCostMax ? neat.leaves : free.leaves;
}

}  // namespace lockstep
