// Plans by themselves: every generator's plan, simulated without links.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <string>

#include "collective/all_topologies.h"
#include "collective/ranks.h"
#include "collective/sums/cost.h"
#include "collective/sums/sum_plan.h"

using namespace lockstep;

namespace {

// The words of a file with one space between them.
std::string words_of(const std::string& path) {
  std::ifstream file(path);
  std::string words;
  for (std::string word; file >> word;) words += word + " ";
  return words;
}

// The leaves in a slot's sum, in the order of the additions.
using Term = std::string;

// Plays a plan with one element per piece. Messages are delivered in the least favourable order
// that the links allow: one link at a time.
class Player {
 public:
  Player(const SumPlan& plan, const LeafShares& shares) : plan_(plan) {
    for (int rank = 0; rank < shares.rank_count(); ++rank) {
      const auto& exchange = plan.exchanges[static_cast<size_t>(rank)];
      terms_.emplace_back(exchange.slots.size());
      const auto nodes = shares.nodes(rank);
      for (size_t slot = 0; slot < exchange.slots.size(); ++slot) {
        if (!exchange.slots[slot].is_given) continue;
        const TreeNode node = nodes[slot % nodes.size()];
        take(rank, static_cast<int>(slot), term(node, shares.leaf_count()));
      }
    }
  }

  void run() {
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (size_t to = plan_.exchanges.size(); to-- > 0;) {
        for (const auto& route : plan_.exchanges[to].routes) {
          has_moved |= deliver(route.peer, static_cast<int>(to), route);
        }
      }
    }
  }

  const Term& at(int rank, int slot) const {
    return terms_[static_cast<size_t>(rank)][static_cast<size_t>(slot)];
  }
  bool has_delivered_all() const {
    size_t sent = 0, received = 0;
    for (const auto& exchange : plan_.exchanges) {
      for (const auto& route : exchange.routes) sent += route.sends.size();
    }
    for (const auto& [link, count] : delivered_) received += count;
    return sent == received;
  }

  // How a node is summed, on any rank.
  static Term term(TreeNode node, int leaf_count) {
    const int first = node.index << node.level;
    if (first >= leaf_count) return "";
    if (node.level == 0) return std::to_string(first);
    const Term left = term({node.level - 1, node.index * 2}, leaf_count);
    const Term right = term({node.level - 1, node.index * 2 + 1}, leaf_count);
    return right.empty() ? left : "(" + left + "+" + right + ")";
  }

 private:
  bool deliver(int from, int to, const ExchangePlan::Route& in) {
    const auto& routes = plan_.exchanges[static_cast<size_t>(from)].routes;
    const auto out = std::find_if(routes.begin(), routes.end(),
                                  [&](const auto& route) { return route.peer == to; });
    size_t& count = delivered_[{from, to}];
    if (out == routes.end() || count == out->sends.size()) return false;
    const auto& message = out->sends[count];
    for (const int slot : message) {
      if (at(from, slot).empty()) return false;
    }
    if (count >= in.receives.size() || in.receives[count].size() != message.size()) return false;
    for (size_t i = 0; i < message.size(); ++i) {
      take(to, in.receives[count][i], at(from, message[i]));
    }
    ++count;
    return true;
  }

  void take(int rank, int slot, Term term) {
    const auto& s = plan_.exchanges[static_cast<size_t>(rank)].slots[static_cast<size_t>(slot)];
    terms_[static_cast<size_t>(rank)][static_cast<size_t>(slot)] = std::move(term);
    if (s.sibling < 0 || at(rank, s.sibling).empty()) return;
    const Term &own = at(rank, slot), &other = at(rank, s.sibling);
    take(rank, s.sum, "(" + (s.is_left ? own + "+" + other : other + "+" + own) + ")");
  }

  const SumPlan& plan_;
  std::vector<std::vector<Term>> terms_;  // (ranks, slots)
  std::map<std::pair<int, int>, size_t> delivered_;
};

// Every rank ends up with the root of every chunk, summed in tree order.
bool is_right(const LeafShares& shares, const LinkGraph& graph, SumAlgorithm algorithm) {
  const SumPlan plan = plan_sum(shares, graph, algorithm);
  Player player(plan, shares);
  player.run();
  if (!player.has_delivered_all()) return false;
  const Term root = [&] {
    int level = 0;
    while (1 << level < shares.leaf_count()) ++level;
    return Player::term({level, 0}, shares.leaf_count());
  }();
  for (int rank = 0; rank < shares.rank_count(); ++rank) {
    const auto& slots = plan.exchanges[static_cast<size_t>(rank)].slots;
    std::vector<int> roots(static_cast<size_t>(plan.chunk_count));
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      if (!slots[slot].is_root) continue;
      if (player.at(rank, static_cast<int>(slot)) != root) return false;
      ++roots[static_cast<size_t>(slots[slot].part)];
    }
    if (std::count(roots.begin(), roots.end(), 1) != plan.chunk_count) return false;
  }
  for (const SumPlan::Hop& hop : plan.hops) {
    if (!graph.has(hop.from, hop.to)) return false;
  }
  return true;
}

std::vector<std::vector<int>> all_leaves(int ranks) {
  std::vector<std::vector<int>> cases;
  cases.emplace_back(ranks, 1);
  cases.emplace_back(ranks, 3);
  std::vector<int> rising, one_only(static_cast<size_t>(ranks)), holes;
  for (int rank = 0; rank < ranks; ++rank) {
    rising.push_back(rank + 1);
    holes.push_back(rank % 3 == 1 ? 0 : 2 * rank + 1);
  }
  one_only.back() = 7;
  cases.push_back(rising);
  cases.push_back(one_only);
  cases.push_back(holes);
  std::minstd_rand random(static_cast<unsigned>(ranks));
  for (int i = 0; i < 6; ++i) {
    std::vector<int> leaves;
    for (int rank = 0; rank < ranks; ++rank) leaves.push_back(static_cast<int>(random() % 8));
    leaves[random() % leaves.size()] += 1;
    cases.push_back(leaves);
  }
  return cases;
}

}  // namespace

TEST_CASE("every algorithm gives every rank the whole sum, added in the one order") {
  int played = 0;
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const Topology topology : kTopologies) {
      const LinkGraph graph = LinkGraph::of(topology, ranks);
      for (const SumAlgorithm algorithm : kSumAlgorithms) {
        if (!is_possible(algorithm, graph)) continue;
        for (const auto& leaves : all_leaves(ranks)) {
          CAPTURE(ranks);
          CAPTURE(topology_name(topology));
          CAPTURE(sum_algorithm_name(algorithm));
          CHECK(is_right(make_shares(leaves), graph, algorithm));
          ++played;
        }
      }
    }
  }
  CHECK(played > 1000);
}

TEST_CASE("any graph of links is enough if it reaches every rank") {
  std::minstd_rand random(5);
  for (int trial = 0; trial < 60; ++trial) {
    const int ranks = 2 + static_cast<int>(random() % 9);
    std::vector<uint64_t> joined(static_cast<size_t>(ranks));
    const auto join = [&](int a, int b) {
      joined[static_cast<size_t>(a)] |= uint64_t{1} << b;
      joined[static_cast<size_t>(b)] |= uint64_t{1} << a;
    };
    for (int rank = 1; rank < ranks; ++rank) {
      join(rank, static_cast<int>(random() % static_cast<unsigned>(rank)));
    }
    for (int extra = static_cast<int>(random() % 4); extra > 0; --extra) {
      const int a = static_cast<int>(random() % static_cast<unsigned>(ranks));
      if (a != 0) join(a, 0);
    }
    const LinkGraph graph(joined);
    for (const auto& leaves : all_leaves(ranks)) {
      for (const SumAlgorithm algorithm : kSumAlgorithms) {
        if (is_possible(algorithm, graph)) {
          CHECK(is_right(make_shares(leaves), graph, algorithm));
        }
      }
    }
  }
}

TEST_CASE("a relay adds partial sums on their way") {
  const LeafShares shares = make_shares({1, 1, 1, 1});
  const SumPlan plan = plan_sum(shares, LinkGraph::of(Topology::kLine, 4), SumAlgorithm::kTree);
  int slots = 0;
  for (const auto& hop : plan.hops) slots += hop.slot_count;
  CHECK(slots == 6);  // three links, one vector each way
}

TEST_CASE("a graph knows its paths") {
  const LinkGraph line = LinkGraph::of(Topology::kLine, 5);
  CHECK(line.distances(0) == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(line.parents(0) == std::vector<int>{0, 0, 1, 2, 3});
  CHECK(line.centre() == 2);
  CHECK(line.diameter() == 4);
  CHECK(line.ring().empty());
  const LinkGraph ring = LinkGraph::of(Topology::kRing, 5);
  CHECK(ring.diameter() == 2);
  CHECK(ring.ring() == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(LinkGraph::of(Topology::kStar, 5).centre() == 0);
  CHECK(LinkGraph::of(Topology::kMesh, 5).is_mesh());
  CHECK(!ring.is_mesh());
  const LinkGraph apart({0b010, 0b001, 0b000});
  CHECK(!apart.is_connected());
  CHECK(apart.reached(0) == 0b011);
  CHECK(apart.distances(0) == std::vector<int>{0, 1, -1});
  CHECK(LinkGraph::of(Topology::kMesh, 64).is_mesh());
  CHECK(LinkGraph::of(Topology::kRing, 64).ring().size() == 64);
}

TEST_CASE("the choice of an algorithm follows the costs of links and the length") {
  const auto choose = [](int ranks, Topology topology, LinkCost link, size_t bytes) {
    const LinkGraph graph = LinkGraph::of(topology, ranks);
    const auto costs = CostTable::uniform(ranks, link, kPieceBytes);
    const LeafShares shares = make_shares(std::vector<int>(static_cast<size_t>(ranks), 2));
    return choose_sums(shares, graph, costs,
                       SumAlgorithm::kAuto)[static_cast<size_t>(std::bit_width(bytes / 4))];
  };
  const LinkCost thunderbolt{.latency_ns = 10'000, .bytes_per_us = 5'000};
  const LinkCost memory{.latency_ns = 150, .bytes_per_us = 8'000};
  for (const LinkCost link : {thunderbolt, memory}) {
    CHECK(choose(2, Topology::kMesh, link, 8) == SumAlgorithm::kMesh);
    CHECK(choose(2, Topology::kMesh, link, 1 << 14) == SumAlgorithm::kMesh);
    CHECK(choose(4, Topology::kMesh, link, 8) == SumAlgorithm::kMesh);
    const SumAlgorithm large = choose(4, Topology::kMesh, link, 1 << 24);
    CHECK(large != SumAlgorithm::kMesh);
    CHECK(large != SumAlgorithm::kTree);
    CHECK(large != SumAlgorithm::kDoubling);
  }
  CHECK(choose(4, Topology::kMesh, thunderbolt, 1 << 20) == SumAlgorithm::kScatter);
  CHECK(choose(4, Topology::kMesh, thunderbolt, 1 << 14) == SumAlgorithm::kMesh);
  CHECK(choose(6, Topology::kRing, thunderbolt, 8) == SumAlgorithm::kRelay);
  CHECK(choose(6, Topology::kRing, thunderbolt, 1 << 24) == SumAlgorithm::kRing);
  CHECK(choose(6, Topology::kLine, thunderbolt, 8) == SumAlgorithm::kRelay);
  CHECK(choose(6, Topology::kLine, thunderbolt, 1 << 26) == SumAlgorithm::kTree);
  CHECK(choose(8, Topology::kStar, thunderbolt, 1 << 24) == SumAlgorithm::kTree);
}

TEST_CASE("a longer vector never costs less, and a slower link never costs less") {
  const LeafShares shares = make_shares({3, 2, 4, 1});
  const LinkGraph graph = LinkGraph::of(Topology::kMesh, 4);
  for (const SumAlgorithm algorithm : kSumAlgorithms) {
    const SumPlan plan = plan_sum(shares, graph, algorithm);
    double before = 0;
    for (size_t count = 1; count < size_t{1} << 24; count *= 2) {
      const auto fast = CostTable::uniform(4, {1000, 5000}, kPieceBytes);
      const auto slow = CostTable::uniform(4, {2000, 1000}, kPieceBytes);
      const double cost = sum_cost_us(plan, count, fast);
      CHECK(cost >= before);
      CHECK(sum_cost_us(plan, count, slow) > cost);
      before = cost;
    }
  }
}

TEST_CASE("algorithms have names") {
  for (const SumAlgorithm algorithm : kSumAlgorithms) {
    CHECK(parse_sum_algorithm(sum_algorithm_name(algorithm)).value() == algorithm);
  }
  CHECK(parse_sum_algorithm("auto").value() == SumAlgorithm::kAuto);
  CHECK(parse_sum_algorithm("bucket").error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("the documents list the algorithms as the program does") {
  CHECK(sum_algorithm_names() == "mesh, relay, tree, scatter, ring, doubling or halving");
  const std::string docs = std::string(LOCKSTEP_SOURCE_DIR) + "/docs/";
  CHECK(words_of(docs + "command-line.md").find("(" + sum_algorithm_names() + ")") !=
        std::string::npos);
  const std::string page = words_of(docs + "internals/collectives.md");
  for (const SumAlgorithm algorithm : kSumAlgorithms) {
    const std::string name(sum_algorithm_name(algorithm));
    CAPTURE(name);
    CHECK(page.find("`" + name + "`") != std::string::npos);
  }
}
