// The ways to add vectors over ranks. All give the same bits; they differ in messages and bytes.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "collective/plan/link_graph.h"

namespace lockstep {

enum class SumAlgorithm {
  kAuto,      // the cheapest one (collective/sums/cost.h)
  kMesh,      // one hop: every rank sends everything to all others
  kRelay,     // each round every rank sends its neighbours what they lack; any links
  kTree,      // added on the way to the central rank, the sum is sent back: few bytes, any links
  kScatter,   // each rank adds its part of the vector for all and sends the sum to all
  kRing,      // the same with neighbours only, half of the parts in each direction
  kDoubling,  // whole vectors between ranks 1, 2, 4... apart
  kHalving,   // parts of the vector between ranks 1, 2, 4... apart, and the sums back
};

inline constexpr std::array kSumAlgorithms{
    SumAlgorithm::kMesh, SumAlgorithm::kRelay,    SumAlgorithm::kTree,   SumAlgorithm::kScatter,
    SumAlgorithm::kRing, SumAlgorithm::kDoubling, SumAlgorithm::kHalving};

Result<SumAlgorithm> parse_sum_algorithm(std::string_view name);
std::string_view sum_algorithm_name(SumAlgorithm algorithm);
// "mesh, relay ... or halving", without auto.
std::string sum_algorithm_names();

// Whether the links allow it.
bool is_possible(SumAlgorithm algorithm, const LinkGraph& graph);
// kUnsupported with a sentence if they do not.
Status check_possible(SumAlgorithm algorithm, const LinkGraph& graph);

// The ranks of doubling and halving, a power of two. Each odd rank below 2 * `extra` is represented
// by the even one before it.
struct DoublingRanks {
  int count = 1;
  int extra = 0;
  explicit DoublingRanks(int size);
  int rank(int index) const { return index < extra ? 2 * index : index + extra; }
};

}  // namespace lockstep
