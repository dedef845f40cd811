#include "collective/group/stage_links.h"

#include <doctest/doctest.h>

#include <set>

#include "transport/form/local_links.h"

using namespace lockstep;

namespace {

Group::Options world_of(LocalLinks& links, int rank) {
  Group::Options options;
  options.rank = rank;
  options.links = std::move(links[static_cast<size_t>(rank)]);
  return options;
}

}  // namespace

TEST_CASE("ranks in order form stages of the same size") {
  const StagePlace place = stage_place(4, 6, 3);
  CHECK(place.stage == 2);
  CHECK(place.rank == 0);
  CHECK(place.ranks == 2);
  CHECK(place.is_last());
  CHECK(!place.is_first());
  CHECK(place.world_rank() == 4);
  CHECK(place.world_rank_of(1) == 5);
  CHECK(stage_place(0, 1, 1).is_first());
  CHECK(stage_place(0, 1, 1).is_last());
}

TEST_CASE("each rank keeps the links of its stage, of its hops, and last-first") {
  struct Case {
    int size;
    int stages;
  };
  for (const auto [size, stages] : {Case{1, 1}, Case{4, 1}, Case{2, 2}, Case{4, 2}, Case{3, 3},
                                    Case{6, 3}, Case{8, 4}, Case{8, 2}}) {
    CAPTURE(size);
    CAPTURE(stages);
    // The omitted links are not needed, and all others are used.
    auto links = open_local_links(LinkOptions{.stages = stages}, size);
    REQUIRE(links.ok());
    for (int rank = 0; rank < size; ++rank) {
      CAPTURE(rank);
      std::vector<const Link*> world;
      for (const auto& link : links.value()[static_cast<size_t>(rank)]) world.push_back(link.get());
      const auto link_of = [&](int peer) { return world[static_cast<size_t>(peer)]; };
      const StagePlace place = stage_place(rank, size, stages);
      const StageLinks split = split_world(world_of(links.value(), rank), stages);
      CHECK(split.group.rank == place.rank);
      CHECK(split.group.first_rank == place.world_rank_of(0));
      REQUIRE(split.group.links.size() == static_cast<size_t>(place.ranks));
      for (int peer = 0; peer < place.ranks; ++peer) {
        CHECK(split.group.links[static_cast<size_t>(peer)].get() ==
              link_of(place.world_rank_of(peer)));
      }
      CHECK(split.previous == (place.is_first() ? nullptr : link_of(rank - place.ranks)));
      CHECK(split.next == (place.is_last() ? nullptr : link_of(rank + place.ranks)));
      const Link* choices = nullptr;
      if (stages > 1 && rank == 0) choices = link_of(size - place.ranks);
      if (stages > 1 && rank == size - place.ranks) choices = link_of(0);
      CHECK(split.choices == choices);
      std::set<const Link*> used{split.previous, split.next, split.choices};
      used.erase(nullptr);
      CHECK(split.links.size() == used.size());
      for (const auto& link : split.group.links) used.insert(link.get());
      std::set<const Link*> there(world.begin(), world.end());
      used.insert(nullptr);
      there.insert(nullptr);
      CHECK(used == there);
    }
  }
}

TEST_CASE("an error inside a stage names the rank of the world") {
  auto links = open_local_links(LinkKind::kShm, 4);
  REQUIRE(links.ok());
  Group::Options world = world_of(links.value(), 2);
  world.timeout = std::chrono::milliseconds(30);
  Group group(split_world(std::move(world), 2).group);
  std::vector<std::byte> data;
  const Status silent = group.broadcast(1, data, 100);
  REQUIRE(!silent.ok());
  CHECK(silent.error().message.find("rank 3") != std::string::npos);
}
