// Picks the group that a request is sent to. All nodes choose alike from what they know: the group
// with the fewest requests; among equals, a hash of the prompt's beginning decides, so that prompts
// with a common beginning share a group while loads are equal. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cluster/part.h"

namespace lockstep {

struct GroupLoad {
  PlacementEpoch epoch;
  bool is_ready = false;  // otherwise its ranks are rejoining: ranked after all ready ones
  int running = 0;        // requests of all nodes, as far as known
};

inline constexpr size_t kBeginningTokens = 64;

// An index; `groups` is not empty.
size_t pick_group(std::span<const GroupLoad> groups, std::span<const int32_t> prompt);

}  // namespace lockstep
