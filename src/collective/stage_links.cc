#include "collective/stage_links.h"

#include <utility>

#include "base/check.h"

namespace lockstep {

StagePlace stage_place(int rank, int size, int stages) {
  LOCKSTEP_CHECK(stages > 0 && size % stages == 0 && rank >= 0 && rank < size);
  const int ranks = size / stages;
  return {.stage = rank / ranks, .stages = stages, .rank = rank % ranks, .ranks = ranks};
}

StageLinks split_world(Group::Options world, int stages) {
  const int size = static_cast<int>(world.links.size());
  const StagePlace place = stage_place(world.rank, size, stages);
  std::vector<std::unique_ptr<Link>> links = std::move(world.links);
  StageLinks split;
  const auto keep = [&](int rank) {
    std::unique_ptr<Link>& link = links[static_cast<size_t>(rank)];
    LOCKSTEP_CHECK(link != nullptr);
    split.links.push_back(std::move(link));
    return split.links.back().get();
  };
  split.group = std::move(world);
  split.group.rank = place.rank;
  split.group.first_rank = place.world_rank_of(0);
  split.group.links.clear();
  for (int rank = 0; rank < place.ranks; ++rank) {
    split.group.links.push_back(std::move(links[static_cast<size_t>(place.world_rank_of(rank))]));
  }
  if (!place.is_first()) split.previous = keep(place.world_rank() - place.ranks);
  if (!place.is_last()) split.next = keep(place.world_rank() + place.ranks);
  if (stages > 1 && place.rank == 0 && (place.is_first() || place.is_last())) {
    // With two stages this is the link of the hop.
    const bool is_neighbour = stages == 2;
    Link* const hop = place.is_first() ? split.next : split.previous;
    split.choices = is_neighbour ? hop : keep(place.is_first() ? size - place.ranks : 0);
  }
  return split;
}

}  // namespace lockstep
