// How the coordinator asks for a placement: a function from a model and what nodes offer to ranks,
// or to a sentence that says exactly why not. The planner gives the real one; split_by_memory() is
// the simplest that is right, for tests and for models whose size alone is known. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "cluster/desired_state.h"
#include "cluster/part.h"

namespace lockstep {

struct NodeOffer {
  NodeId node;
  int64_t free_bytes = 0;
  int64_t speed = 0;  // bytes/s
};

// kExhausted: it does not fit. Called seldom (when something changed, or each few seconds for a
// model that does not fit), on the brain's thread: some 50 ms at most.
using PlanFunction = std::function<Result<std::vector<RankPart>>(
    const DesiredEntry& entry, std::span<const NodeOffer> offers)>;

// One rank on the fewest nodes that suffice, the ones with most memory first; each gets bytes in
// proportion to what it has free.
Result<std::vector<RankPart>> split_by_memory(const DesiredEntry& entry, int64_t model_bytes,
                                              std::span<const NodeOffer> offers);

}  // namespace lockstep
