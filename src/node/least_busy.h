// Which of a model's groups a request goes to. All nodes choose alike by what they know: the one
// with the fewest requests; of several such, one that the beginning of the prompt decides, so that
// prompts which begin alike meet in one group while there is no reason against it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cluster/part.h"

namespace lockstep {

struct GroupLoad {
  PlacementEpoch epoch;
  bool is_ready = false;  // otherwise its ranks are being joined anew: it is taken after all others
  int running = 0;        // requests of all nodes, as far as they are known
};

inline constexpr size_t kBeginningTokens = 64;

// An index; `groups` is not empty.
size_t least_busy(std::span<const GroupLoad> groups, std::span<const int32_t> prompt);

}  // namespace lockstep
