// What the nodes report, put together again: the placements of each model and how they are. So a
// new coordinator needs no memory of the one before it. Used by Coordinator. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/membership.h"
#include "cluster/messages.h"
#include "cluster/part.h"

namespace lockstep {

// A node that is alive, as the coordinator sees it; itself included. Borrows the heartbeat.
struct NodeView {
  NodeId id;
  bool is_follower = false;  // obeys this coordinator
  bool is_usable = false;    // models may be placed there
  const NodeHeartbeat* beat = nullptr;
};

struct PartView {
  const NodeView* node = nullptr;
  const PartReport* part = nullptr;
};

enum class PlacementHealth : uint8_t {
  kReady,
  kStarting,
  kForming,  // memory is promised, not everything is started
  kBroken,   // some of it is not there or ends
  kFailed,   // some of it ended by itself
};

struct FoundPlacement {
  PlacementEpoch epoch;
  PlacementHealth health = PlacementHealth::kReady;
  std::string why;  // of broken and failed ones
  std::vector<PartView> parts;

  bool is_whole() const { return health <= PlacementHealth::kStarting; }
};

// The placements of each model, by epoch; whatever any of the nodes reports a part of. `members`
// has the nodes' names.
using FoundPlacements = std::map<std::string_view, std::vector<FoundPlacement>>;
FoundPlacements find_placements(std::span<const NodeView> nodes, const Membership& members);

const NodeView* find_node(std::span<const NodeView> nodes, const NodeId& id);
const PartReport* find_part(const NodeView& node, std::string_view model,
                            const PlacementEpoch& epoch);

}  // namespace lockstep
