#include "cluster/brain/plan_function.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "cluster/sentences.h"

namespace lockstep {
namespace {

// Proportional in whole bytes; the rounding remainder goes wherever it fits.
std::vector<RankPart> shares_of(int64_t bytes, std::span<const NodeOffer> nodes, int64_t free) {
  std::vector<RankPart> ranks;
  int64_t left = bytes;
  for (const NodeOffer& node : nodes) {
    const double part = static_cast<double>(node.free_bytes) / static_cast<double>(free);
    const auto share = static_cast<int64_t>(static_cast<double>(bytes) * part);
    ranks.push_back({node.node, std::clamp<int64_t>(share, 0, std::min(left, node.free_bytes))});
    left -= ranks.back().bytes;
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int64_t more = std::min(left, nodes[i].free_bytes - ranks[i].bytes);
    ranks[i].bytes += more;
    left -= more;
  }
  return ranks;
}

}  // namespace

Result<RankPlan> split_by_memory(const DesiredEntry& entry, int64_t model_bytes,
                                 std::span<const NodeOffer> offers) {
  std::vector<NodeOffer> nodes(offers.begin(), offers.end());
  std::erase_if(nodes, [](const NodeOffer& node) { return node.free_bytes <= 0; });
  std::sort(nodes.begin(), nodes.end(), [](const NodeOffer& a, const NodeOffer& b) {
    return std::tie(b.free_bytes, a.node) < std::tie(a.free_bytes, b.node);
  });
  const auto wished = static_cast<size_t>(std::max<int64_t>(1, entry.promises.parallel));
  int64_t free = 0;
  for (size_t count = 1; count <= std::min(nodes.size(), kPlacementRanksMax); ++count) {
    free += nodes[count - 1].free_bytes;
    if (free >= model_bytes && count >= wished) {
      auto ranks = shares_of(model_bytes, std::span(nodes).first(count), free);
      std::erase_if(ranks, [](const RankPart& rank) { return rank.bytes == 0; });
      for (RankPart& rank : ranks) rank.share = std::clamp<int64_t>(rank.bytes >> 10, 1, kShareMax);
      return RankPlan{std::move(ranks), 1};
    }
  }
  if (nodes.size() < wished && free >= model_bytes) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("model '{}' asks for {} ranks but only {} nodes have free memory",
                             entry.name, wished, nodes.size())};
  }
  return Error{ErrorCode::kExhausted,
               fmt::format("model '{}' needs {} but the {} nodes have {} free", entry.name,
                           gib_text(model_bytes), nodes.size(), gib_text(free))};
}

Result<std::vector<RankPlan>> split_groups(const DesiredEntry& entry, size_t groups,
                                           int64_t model_bytes, std::span<const NodeOffer> offers) {
  std::vector<RankPlan> plans{TRY(split_by_memory(entry, model_bytes, offers))};
  std::vector<NodeOffer> left(offers.begin(), offers.end());
  while (plans.size() < groups) {
    std::erase_if(
        left, [&](const NodeOffer& offer) { return bytes_on(plans.back().ranks, offer.node) > 0; });
    auto next = split_by_memory(entry, model_bytes, left);
    if (!next.ok()) break;
    plans.push_back(std::move(next.value()));
  }
  return plans;
}

}  // namespace lockstep
