// The cost of an all-reduce on given links, and the cheapest algorithm. Pure functions of values
// that are the same on every rank, so that all ranks choose alike; any choice gives the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collective/plan/link_cost.h"
#include "collective/sums/sum_plan.h"

namespace lockstep {

struct CostTable {
  int size = 0;
  std::vector<LinkCost> links;  // (ranks, ranks), symmetric
  uint32_t message_ns = 200;    // a rank's work for each frame it sends
  uint32_t round_ns = 500;      // and for each round, on top of its links
  uint32_t add_bytes_per_us = 16000;
  size_t piece_bytes = 0;

  // The same cost for each pair, for a group that has not measured its links.
  static CostTable uniform(int size, LinkCost cost, size_t piece_bytes);
  const LinkCost& link(int a, int b) const { return links[static_cast<size_t>(a * size + b)]; }
};

// The cost of summing vectors of `count` floats by this plan. Rounds run one after another; the
// rank that sends most in a round sets its time, since its frames leave one by one. In a long
// vector the pieces after the first overlap with later rounds, so only the busiest rank's bytes
// count.
double sum_cost_us(const SumPlan& plan, size_t count, const CostTable& costs);

// The choice for every length: by_bits[bit_width(count)]. All are `forced` unless it is kAuto.
using SumChoice = std::array<SumAlgorithm, 65>;
SumChoice choose_sums(const LeafShares& shares, const LinkGraph& graph, const CostTable& costs,
                      SumAlgorithm forced);

}  // namespace lockstep
