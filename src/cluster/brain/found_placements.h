// Reassembles the nodes' reports: the placements of each model and their health. So a new
// coordinator needs no memory of the previous one. Used by Coordinator. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/brain/membership.h"
#include "cluster/brain/messages.h"
#include "cluster/part.h"

namespace lockstep {

// An alive node, as the coordinator sees it; itself included. Borrows the heartbeat.
struct NodeView {
  NodeId id;
  bool is_follower = false;  // obeys this coordinator
  bool is_usable = false;    // models may be placed there
  const NodeHeartbeat* beat = nullptr;
};

struct PartView {
  const NodeView* node = nullptr;
  const PlacementShare* part = nullptr;
};

enum class PlacementHealth : uint8_t {
  kReady,
  kStarting,
  kForming,  // memory is promised, not all parts are started
  kBroken,   // a part is missing or is ending
  kFailed,   // a part ended by itself
};

struct FoundPlacement {
  PlacementEpoch epoch;
  PlacementHealth health = PlacementHealth::kReady;
  std::string why;  // if broken or failed
  std::vector<PartView> parts;

  bool is_whole() const { return health <= PlacementHealth::kStarting; }
};

// The placements of each model, by epoch; any node's report of a part counts. `members` has the
// nodes' names.
using FoundPlacements = std::map<std::string_view, std::vector<FoundPlacement>>;
FoundPlacements find_placements(std::span<const NodeView> nodes, const Membership& members);

const NodeView* find_node(std::span<const NodeView> nodes, const NodeId& id);
const PlacementShare* find_part(const NodeView& node, std::string_view model,
                                const PlacementEpoch& epoch);

}  // namespace lockstep
