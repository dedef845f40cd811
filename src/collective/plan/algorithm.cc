#include "collective/plan/algorithm.h"

#include <bit>
#include <string>
#include <utility>

#include "base/named_values.h"

namespace lockstep {
namespace {

constexpr NamedValues<SumAlgorithm, 8> kAlgorithmNames{{
    {SumAlgorithm::kAuto, "auto"},
    {SumAlgorithm::kMesh, "mesh"},
    {SumAlgorithm::kRelay, "relay"},
    {SumAlgorithm::kTree, "tree"},
    {SumAlgorithm::kScatter, "scatter"},
    {SumAlgorithm::kRing, "ring"},
    {SumAlgorithm::kDoubling, "doubling"},
    {SumAlgorithm::kHalving, "halving"},
}};
static_assert(kAlgorithmNames.size() == kSumAlgorithms.size() + 1);

bool has_doubling_links(const LinkGraph& graph) {
  const DoublingRanks ranks(graph.size());
  for (int i = 0; i < ranks.extra; ++i) {
    if (!graph.has(2 * i, 2 * i + 1)) return false;
  }
  for (int i = 0; i < ranks.count; ++i) {
    for (int apart = 1; apart < ranks.count; apart *= 2) {
      if (!graph.has(ranks.rank(i), ranks.rank(i ^ apart))) return false;
    }
  }
  return true;
}

}  // namespace

DoublingRanks::DoublingRanks(int size)
    : count(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))), extra(size - count) {}

Result<SumAlgorithm> parse_sum_algorithm(std::string_view name) {
  return value_named(kAlgorithmNames, name, "algorithm of sums");
}

std::string_view sum_algorithm_name(SumAlgorithm algorithm) {
  return name_in(kAlgorithmNames, algorithm);
}

std::string sum_algorithm_names() {
  return names_listed(kAlgorithmNames, 1);
}

bool is_possible(SumAlgorithm algorithm, const LinkGraph& graph) {
  switch (algorithm) {
    case SumAlgorithm::kAuto:
    case SumAlgorithm::kRelay:
    case SumAlgorithm::kTree:
      return true;
    case SumAlgorithm::kMesh:
    case SumAlgorithm::kScatter:
      return graph.is_mesh();
    case SumAlgorithm::kRing:
      return !graph.ring().empty();
    case SumAlgorithm::kDoubling:
    case SumAlgorithm::kHalving:
      return has_doubling_links(graph);
  }
  return false;
}

Status check_possible(SumAlgorithm algorithm, const LinkGraph& graph) {
  if (is_possible(algorithm, graph)) return Ok{};
  return Error{ErrorCode::kUnsupported, "the links of these " + std::to_string(graph.size()) +
                                            " ranks do not allow the algorithm " +
                                            std::string(sum_algorithm_name(algorithm)) +
                                            "; relay and tree are always possible"};
}

}  // namespace lockstep
