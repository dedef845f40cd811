// Placements: the epoch of a placement, its ranks, and the part of it that one node holds. Used in
// messages and by both sides of an order. Plain values.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/named_values.h"
#include "cluster/node_id.h"

namespace lockstep {

inline constexpr size_t kPlacementRanksMax = 64;
inline constexpr size_t kPartsMax = 128;  // on one node, ended ones included
inline constexpr size_t kReasonBytesMax = 400;

// One placement of one model. The counter grows from coordinator to coordinator as far as they know
// of each other; otherwise the coordinator and its incarnation make the epoch unique.
struct PlacementEpoch {
  int64_t counter = 0;
  NodeId coordinator;
  int64_t incarnation = 0;  // random, new at each start of the coordinator's node

  auto operator<=>(const PlacementEpoch&) const = default;
};

struct RankPart {
  NodeId node;
  int64_t bytes = 0;
  int64_t share = 1;  // of the model, in any scale; positive

  bool operator==(const RankPart&) const = default;
};

// How a model is spread over nodes. The stages have equal numbers of ranks; the first ranks are the
// first stage.
struct RankPlan {
  std::vector<RankPart> ranks;
  int64_t stages = 1;

  bool operator==(const RankPlan&) const = default;
};
inline constexpr int64_t kShareMax = int64_t{1} << 40;

enum class PartState : uint8_t {
  kReserved,  // memory promised, nothing started
  kStarting,
  kReady,
  kStopping,  // ordered to end; its memory is not free yet
  kFailed,    // ended by itself; holds no memory
};

inline constexpr NamedValues<PartState, 5> kPartStates{{{PartState::kReserved, "reserved"},
                                                        {PartState::kStarting, "starting"},
                                                        {PartState::kReady, "ready"},
                                                        {PartState::kStopping, "stopping"},
                                                        {PartState::kFailed, "failed"}}};

// One node's part of one placement: one rank or several.
struct PlacementShare {
  std::string model;
  PlacementEpoch epoch;
  std::vector<RankPart> ranks;  // of the whole placement, in order
  int64_t key = 0;              // placement_key() of its entry
  PartState state = PartState::kReserved;
  int64_t bytes = 0;   // of this node's ranks together
  std::string reason;  // if it failed
  int64_t stages = 1;  // of the whole placement

  bool operator==(const PlacementShare&) const = default;
};

// The memory that the ranks on `node` need together.
inline int64_t bytes_on(const std::vector<RankPart>& ranks, const NodeId& node) {
  int64_t bytes = 0;
  for (const RankPart& rank : ranks) bytes += rank.node == node ? rank.bytes : 0;
  return bytes;
}

}  // namespace lockstep
