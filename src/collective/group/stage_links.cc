#include "collective/group/stage_links.h"

#include <utility>

#include "base/check.h"

namespace lockstep {

StagePlace stage_place(int rank, int size, int stages) {
  LOCKSTEP_CHECK(stages > 0 && size % stages == 0 && rank >= 0 && rank < size);
  const int ranks = size / stages;
  return {.stage = rank / ranks, .stages = stages, .rank = rank % ranks, .ranks = ranks};
}

namespace {

// The costs of one stage's links, out of those measured between all ranks of the world.
std::vector<LinkCost> stage_costs(const std::vector<LinkCost>& world, int size,
                                  const StagePlace& place) {
  std::vector<LinkCost> costs;
  if (world.empty()) return costs;
  for (int a = 0; a < place.ranks; ++a) {
    for (int b = 0; b < place.ranks; ++b) {
      const int row = place.world_rank_of(a), column = place.world_rank_of(b);
      costs.push_back(world[static_cast<size_t>(row * size + column)]);
    }
  }
  return costs;
}

}  // namespace

StageLinks split_world(Group::Options world, int stages) {
  const int size = static_cast<int>(world.links.size());
  const StagePlace place = stage_place(world.rank, size, stages);
  std::vector<std::unique_ptr<Link>> links = std::move(world.links);
  if (stages == 1) {
    world.links = std::move(links);
    return {.group = std::move(world)};
  }
  StageLinks split;
  const auto keep = [&](int rank) {
    std::unique_ptr<Link>& link = links[static_cast<size_t>(rank)];
    LOCKSTEP_CHECK(link != nullptr);
    split.links.push_back(std::move(link));
    return split.links.back().get();
  };
  split.group = std::move(world);
  split.group.rank = place.rank;
  split.group.graph = {};  // within a stage all ranks have links
  split.group.link_costs = stage_costs(split.group.link_costs, size, place);
  split.group.first_rank = place.world_rank_of(0);
  split.group.links.clear();
  for (int rank = 0; rank < place.ranks; ++rank) {
    split.group.links.push_back(std::move(links[static_cast<size_t>(place.world_rank_of(rank))]));
  }
  if (!place.is_first()) split.previous = keep(place.world_rank() - place.ranks);
  if (!place.is_last()) split.next = keep(place.world_rank() + place.ranks);
  if (place.rank == 0 && (place.is_first() || place.is_last())) {
    // With two stages this is also the link between neighbours.
    const bool is_neighbour = stages == 2;
    Link* const hop = place.is_first() ? split.next : split.previous;
    split.choices = is_neighbour ? hop : keep(place.is_first() ? size - place.ranks : 0);
  }
  return split;
}

}  // namespace lockstep
