// The algorithms of collective/plan/algorithm.h as rounds of a SumPlanner.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "collective/sums/sum_plan.h"

namespace lockstep {
namespace {

std::vector<int> range(int count) {
  std::vector<int> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Sends `to` what its neighbours hold and it lacks: for each part of the tree the largest sum, from
// the neighbour that has least to send.
void tell(SumPlanner& planner, const LinkGraph& graph, int to, std::vector<int>& load) {
  struct Offer {
    SumPlanner::Held held;
    int from;
  };
  std::vector<Offer> offers;
  for (int from = 0; from < graph.size(); ++from) {
    if (!graph.has(from, to)) continue;
    for (const auto& held : planner.held(from, 0)) {
      if (!planner.knows(to, 0, held.node)) offers.push_back({held, from});
    }
  }
  std::stable_sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
    return a.held.node.level > b.held.node.level;
  });
  std::vector<std::vector<int>> messages(static_cast<size_t>(graph.size()));
  std::vector<TreeNode> taken;
  for (const Offer& offer : offers) {
    const TreeNode node = offer.held.node;
    const bool is_taken = std::any_of(taken.begin(), taken.end(),
                                      [&](TreeNode outer) { return is_inside(node, outer); });
    if (is_taken) continue;
    const Offer* best = &offer;
    for (const Offer& other : offers) {
      const bool is_idler =
          load[static_cast<size_t>(other.from)] < load[static_cast<size_t>(best->from)];
      if (other.held.node == node && is_idler) best = &other;
    }
    taken.push_back(node);
    ++load[static_cast<size_t>(best->from)];
    messages[static_cast<size_t>(best->from)].push_back(best->held.slot);
  }
  for (int from = 0; from < graph.size(); ++from) {
    planner.send(from, to, std::move(messages[static_cast<size_t>(from)]));
  }
}

void plan_relay(SumPlanner& planner, const LinkGraph& graph) {
  while (!planner.is_complete()) {
    std::vector<int> load(static_cast<size_t>(graph.size()));
    for (int to = 0; to < graph.size(); ++to) tell(planner, graph, to, load);
    planner.end_round();
  }
}

void plan_tree(SumPlanner& planner, const LinkGraph& graph) {
  const int centre = graph.centre();
  const std::vector<int> parents = graph.parents(centre);
  const std::vector<int> depths = graph.distances(centre);
  const int deepest = *std::max_element(depths.begin(), depths.end());
  for (int depth = deepest; depth > 0; --depth) {
    for (int rank = 0; rank < graph.size(); ++rank) {
      const auto r = static_cast<size_t>(rank);
      if (depths[r] == depth) planner.send_all(rank, parents[r], {0});
    }
    planner.end_round();
  }
  for (int depth = 1; depth <= deepest; ++depth) {
    for (int rank = 0; rank < graph.size(); ++rank) {
      const auto r = static_cast<size_t>(rank);
      if (depths[r] == depth && !planner.has_root(rank, 0)) planner.send_all(parents[r], rank, {0});
    }
    planner.end_round();
  }
}

// Chunk c is added by rank c.
void plan_scatter(SumPlanner& planner, const LinkGraph& graph) {
  for (int from = 0; from < graph.size(); ++from) {
    for (int step = 1; step < graph.size(); ++step) {
      const int to = (from + step) % graph.size();
      if (!planner.has_root(to, to)) planner.send_all(from, to, {to});
    }
  }
  planner.end_round();
  for (int from = 0; from < graph.size(); ++from) {
    for (int step = 1; step < graph.size(); ++step) {
      const int to = (from + step) % graph.size();
      if (!planner.has_root(to, from)) planner.send_all(from, to, {from});
    }
  }
  planner.end_round();
}

// Chunk c < size goes up the ring and is complete at place c; chunk size + c goes down.
void plan_ring(SumPlanner& planner, const LinkGraph& graph) {
  const std::vector<int> order = graph.ring();
  const int size = graph.size();
  const auto rank_at = [&](int place) {
    return order[static_cast<size_t>((place % size + size) % size)];
  };
  const auto pass = [&](int first, int step) {
    for (int chunk = 0; chunk < 2 * size; ++chunk) {
      const int way = chunk < size ? 1 : -1;
      const int place = chunk % size + way * (first + step);
      const int from = rank_at(place), to = rank_at(place + way);
      if (!planner.has_root(to, chunk)) planner.send_all(from, to, {chunk});
    }
    planner.end_round();
  };
  for (int step = 0; step + 1 < size; ++step) pass(1, step);
  for (int step = 0; step + 1 < size; ++step) pass(0, step);
}

void plan_doubling(SumPlanner& planner, const LinkGraph& graph) {
  const DoublingRanks ranks(graph.size());
  const auto send = [&](int from, int to) {
    if (!planner.has_root(to, 0)) planner.send_all(from, to, {0});
  };
  for (int i = 0; i < ranks.extra; ++i) send(2 * i + 1, 2 * i);
  planner.end_round();
  for (int apart = 1; apart < ranks.count; apart *= 2) {
    for (int i = 0; i < ranks.count; ++i) send(ranks.rank(i), ranks.rank(i ^ apart));
    planner.end_round();
  }
  for (int i = 0; i < ranks.extra; ++i) send(2 * i, 2 * i + 1);
  planner.end_round();
}

// `index` is responsible for the chunks that share its lowest bits, one more bit each round.
void plan_halving(SumPlanner& planner, const LinkGraph& graph) {
  const DoublingRanks ranks(graph.size());
  const std::vector<int> all = range(ranks.count);
  const auto lacking = [&](int to, const std::vector<int>& chunks) {
    std::vector<int> some;
    for (const int chunk : chunks) {
      if (!planner.has_root(to, chunk)) some.push_back(chunk);
    }
    return some;
  };
  const auto of_bits = [&](int index, int mask) {
    std::vector<int> some;
    for (const int chunk : all) {
      if ((chunk & mask) == (index & mask)) some.push_back(chunk);
    }
    return some;
  };
  const auto send = [&](int from, int to, const std::vector<int>& chunks) {
    planner.send_all(from, to, lacking(to, chunks));
  };
  for (int i = 0; i < ranks.extra; ++i) send(2 * i + 1, 2 * i, all);
  planner.end_round();
  for (int apart = 1; apart < ranks.count; apart *= 2) {
    for (int i = 0; i < ranks.count; ++i) {
      send(ranks.rank(i), ranks.rank(i ^ apart), of_bits(i ^ apart, 2 * apart - 1));
    }
    planner.end_round();
  }
  for (int apart = ranks.count / 2; apart > 0; apart /= 2) {
    for (int i = 0; i < ranks.count; ++i) {
      send(ranks.rank(i), ranks.rank(i ^ apart), of_bits(i, 2 * apart - 1));
    }
    planner.end_round();
  }
  for (int i = 0; i < ranks.extra; ++i) send(2 * i, 2 * i + 1, all);
  planner.end_round();
}

int chunk_count(SumAlgorithm algorithm, int size) {
  if (algorithm == SumAlgorithm::kScatter) return size;
  if (algorithm == SumAlgorithm::kRing) return 2 * size;
  if (algorithm == SumAlgorithm::kHalving) return DoublingRanks(size).count;
  return 1;
}

}  // namespace

SumPlan plan_sum(const LeafShares& shares, const LinkGraph& graph, SumAlgorithm algorithm) {
  LOCKSTEP_CHECK(shares.rank_count() == graph.size() && is_possible(algorithm, graph));
  SumPlanner planner(shares, chunk_count(algorithm, graph.size()));
  switch (algorithm) {
    case SumAlgorithm::kAuto:
    case SumAlgorithm::kMesh:
    case SumAlgorithm::kRelay:
      plan_relay(planner, graph);
      break;
    case SumAlgorithm::kTree:
      plan_tree(planner, graph);
      break;
    case SumAlgorithm::kScatter:
      plan_scatter(planner, graph);
      break;
    case SumAlgorithm::kRing:
      plan_ring(planner, graph);
      break;
    case SumAlgorithm::kDoubling:
      plan_doubling(planner, graph);
      break;
    case SumAlgorithm::kHalving:
      plan_halving(planner, graph);
      break;
  }
  LOCKSTEP_CHECK(planner.is_complete());
  return planner.take();
}

}  // namespace lockstep
