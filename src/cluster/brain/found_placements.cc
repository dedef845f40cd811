#include "cluster/brain/found_placements.h"

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

void judge(FoundPlacement& placement, std::span<const NodeView> nodes, const Membership& members) {
  const auto worsen = [&](PlacementHealth health, const NodeId& node, std::string_view why) {
    if (health <= placement.health) return;
    placement.health = health;
    placement.why = fmt::format("node {}{}", members.name_of(node), why);
  };
  for (const RankPart& rank : placement.parts.front().part->ranks) {
    const bool is_held =
        std::any_of(placement.parts.begin(), placement.parts.end(),
                    [&](const PartView& held) { return held.node->id == rank.node; });
    if (is_held) continue;
    worsen(PlacementHealth::kBroken, rank.node,
           find_node(nodes, rank.node) == nullptr ? " is lost" : " has ended its part");
  }
  for (const PartView& held : placement.parts) {
    worsen(
        health_of(held.part->state), held.node->id,
        held.part->state == PartState::kFailed ? ": " + held.part->reason : " is ending its part");
  }
}

}  // namespace

FoundPlacements find_placements(std::span<const NodeView> nodes, const Membership& members) {
  FoundPlacements found;
  for (const NodeView& node : nodes) {
    for (const PlacementShare& part : node.beat->parts) {
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
    for (FoundPlacement& placement : placements) judge(placement, nodes, members);
  }
  return found;
}

const NodeView* find_node(std::span<const NodeView> nodes, const NodeId& id) {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const NodeView& node) { return node.id == id; });
  return found == nodes.end() ? nullptr : &*found;
}

const PlacementShare* find_part(const NodeView& node, std::string_view model,
                                const PlacementEpoch& epoch) {
  for (const PlacementShare& part : node.beat->parts) {
    if (part.model == model && part.epoch == epoch) return &part;
  }
  return nullptr;
}

}  // namespace lockstep
