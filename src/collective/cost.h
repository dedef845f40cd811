// What an all-reduce costs on given links, and which algorithm costs least. Pure functions of
// values that are the same on every rank, so that all ranks choose alike; any choice gives the same
// bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collective/link_cost.h"
#include "collective/sum_plan.h"

namespace lockstep {

struct CostTable {
  int size = 0;
  std::vector<LinkCost> links;  // (ranks, ranks), symmetric
  uint32_t message_ns = 200;    // work of a rank for each frame it sends
  uint32_t round_ns = 500;      // and for each round, beside its links
  uint32_t add_bytes_per_us = 16000;
  size_t piece_bytes = 0;

  // The same for each pair: of a group that has not measured its links.
  static CostTable uniform(int size, LinkCost cost, size_t piece_bytes);
  const LinkCost& link(int a, int b) const { return links[static_cast<size_t>(a * size + b)]; }
};

// Of summing vectors of `count` floats by this plan. Rounds follow each other; in each the rank
// with most to send counts, since its frames leave one after the other. Of a long vector, what
// follows the first piece is on the way while later rounds run, so only the busiest rank's bytes
// count.
double sum_cost_us(const SumPlan& plan, size_t count, const CostTable& costs);

// The choice for every length: by_bits[bit_width(count)]. `forced`, unless kAuto, everywhere.
using SumChoice = std::array<SumAlgorithm, 65>;
SumChoice choose_sums(const LeafShares& shares, const LinkGraph& graph, const CostTable& costs,
                      SumAlgorithm forced);

}  // namespace lockstep
