#include "cluster/found_placements.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {
namespace {

PlacementHealth health_of(PartState state) {
  switch (state) {
    case PartState::kReserved:
      return PlacementHealth::kForming;
    case PartState::kStarting:
      return PlacementHealth::kStarting;
    case PartState::kReady:
      return PlacementHealth::kReady;
    case PartState::kStopping:
      return PlacementHealth::kBroken;
    case PartState::kFailed:
      break;
  }
  return PlacementHealth::kFailed;
}

void judge(FoundPlacement& placement, std::span<const NodeView> nodes) {
  const auto worsen = [&](PlacementHealth health, std::string why) {
    if (health <= placement.health) return;
    placement.health = health;
    placement.why = std::move(why);
  };
  for (const RankPart& rank : placement.parts.front().part->ranks) {
    const bool is_held =
        std::any_of(placement.parts.begin(), placement.parts.end(),
                    [&](const PartView& held) { return held.node->id == rank.node; });
    if (is_held) continue;
    worsen(PlacementHealth::kBroken,
           find_node(nodes, rank.node) == nullptr
               ? fmt::format("node {} is lost", rank.node.short_text())
               : fmt::format("node {} has ended its part", rank.node.short_text()));
  }
  for (const PartView& held : placement.parts) {
    worsen(health_of(held.part->state),
           held.part->state == PartState::kFailed
               ? fmt::format("node {}: {}", held.node->id.short_text(), held.part->reason)
               : fmt::format("node {} ends its part", held.node->id.short_text()));
  }
}

}  // namespace

FoundPlacements find_placements(std::span<const NodeView> nodes) {
  FoundPlacements found;
  for (const NodeView& node : nodes) {
    for (const PartReport& part : node.beat->parts) {
      auto& placements = found[part.model];
      auto place = std::find_if(placements.begin(), placements.end(),
                                [&](const auto& other) { return other.epoch == part.epoch; });
      if (place == placements.end()) {
        place = placements.insert(placements.end(), FoundPlacement{});
        place->epoch = part.epoch;
      }
      place->parts.push_back({&node, &part});
    }
  }
  for (auto& [model, placements] : found) {
    for (FoundPlacement& placement : placements) judge(placement, nodes);
  }
  return found;
}

const NodeView* find_node(std::span<const NodeView> nodes, const NodeId& id) {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const NodeView& node) { return node.id == id; });
  return found == nodes.end() ? nullptr : &*found;
}

const PartReport* find_part(const NodeView& node, std::string_view model,
                            const PlacementEpoch& epoch) {
  for (const PartReport& part : node.beat->parts) {
    if (part.model == model && part.epoch == epoch) return &part;
  }
  return nullptr;
}

}  // namespace lockstep
