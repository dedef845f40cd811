#include "collective/sums/cost.h"

#include <algorithm>
#include <bit>
#include <map>

namespace lockstep {
namespace {

// The choice no longer changes for lengths of more bits than this; floats of one exchange.
constexpr int kLengthBitsMax = 30;

}  // namespace

CostTable CostTable::uniform(int size, LinkCost cost, size_t piece_bytes) {
  CostTable table;
  table.size = size;
  table.links.assign(static_cast<size_t>(size) * static_cast<size_t>(size), cost);
  table.piece_bytes = piece_bytes;
  return table;
}

double sum_cost_us(const SumPlan& plan, size_t count, const CostTable& costs) {
  const auto chunks = static_cast<size_t>(plan.chunk_count);
  const double chunk_bytes = static_cast<double>((count + chunks - 1) / chunks) * sizeof(float);
  const auto ranks = plan.adds.size();
  std::vector<double> sending(ranks), latency(ranks), later(ranks);
  double total = 0;
  const auto end_round = [&] {
    double longest = 0;
    for (size_t rank = 0; rank < ranks; ++rank) {
      longest = std::max(longest, sending[rank] + latency[rank]);
      sending[rank] = latency[rank] = 0;
    }
    total += longest + costs.round_ns / 1e3;
  };
  int round = 0;
  for (const SumPlan::Hop& hop : plan.hops) {
    if (hop.round != round) end_round();
    round = hop.round;
    const LinkCost& link = costs.link(hop.from, hop.to);
    const double bytes = chunk_bytes * hop.slot_count;
    const double first = std::min(bytes, static_cast<double>(costs.piece_bytes));
    const auto from = static_cast<size_t>(hop.from);
    sending[from] += costs.message_ns / 1e3 + first / link.bytes_per_us;
    latency[from] = std::max(latency[from], link.latency_ns / 1e3);
    later[from] += (bytes - first) / link.bytes_per_us;
  }
  end_round();
  const int adds = *std::max_element(plan.adds.begin(), plan.adds.end());
  return total + *std::max_element(later.begin(), later.end()) +
         adds * chunk_bytes / costs.add_bytes_per_us;
}

SumChoice choose_sums(const LeafShares& shares, const LinkGraph& graph, const CostTable& costs,
                      SumAlgorithm forced) {
  SumChoice choice;
  choice.fill(forced);
  if (forced != SumAlgorithm::kAuto) return choice;
  std::map<SumAlgorithm, SumPlan> plans;
  for (const SumAlgorithm algorithm : kSumAlgorithms) {
    // On a mesh a relay is one hop too.
    if (algorithm == SumAlgorithm::kRelay && graph.is_mesh()) continue;
    if (is_possible(algorithm, graph)) plans[algorithm] = plan_sum(shares, graph, algorithm);
  }
  for (int bits = 0; bits < static_cast<int>(choice.size()); ++bits) {
    const size_t count = (size_t{1} << std::min(bits, kLengthBitsMax)) * 3 / 4;
    double least = 0;
    for (const auto& [algorithm, plan] : plans) {
      const double cost = sum_cost_us(plan, std::max<size_t>(count, 1), costs);
      const bool is_first = choice[static_cast<size_t>(bits)] == SumAlgorithm::kAuto;
      if (!is_first && cost >= least) continue;
      choice[static_cast<size_t>(bits)] = algorithm;
      least = cost;
    }
  }
  return choice;
}

}  // namespace lockstep
