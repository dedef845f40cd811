// How the coordinator asks for placements: a function from a model and what nodes offer to the
// ranks of groups, or to a sentence that says exactly why not. The planner gives the real one;
// split_groups() is the simplest that is right, for tests and for models whose size alone is known.
// Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/desired_state.h"
#include "cluster/messages.h"
#include "cluster/part.h"

namespace lockstep {

struct NodeOffer {
  NodeId node;
  std::string name{};  // for sentences
  int64_t free_bytes = 0;
  int64_t speed = 0;                     // bytes/s
  int64_t operations_s = 0;              // of prompts; 0: not known
  int64_t link_bytes_s = 0;              // of its network; 0: not known
  std::vector<RoundTrip> round_trips{};  // that it measured
};

// For as many groups as fit, one at least and `groups` at most, each whole by itself and no two of
// them on one node. kExhausted: not even one fits. Called seldom (when something changed, or each
// few seconds for a model that does not fit), on the brain's thread: some 50 ms at most. kTimeout:
// what has to be read or brought here first is on its way, which refuses nothing;
// Brain::plan_again() when it is there.
using PlanFunction = std::function<Result<std::vector<RankPlan>>(
    const DesiredEntry& entry, size_t groups, std::span<const NodeOffer> offers)>;

// One rank on the fewest nodes that suffice, the ones with most memory first; each gets bytes in
// proportion to what it has free.
Result<RankPlan> split_by_memory(const DesiredEntry& entry, int64_t model_bytes,
                                 std::span<const NodeOffer> offers);
// That for one group after the other, each on what those before it leave.
Result<std::vector<RankPlan>> split_groups(const DesiredEntry& entry, size_t groups,
                                           int64_t model_bytes, std::span<const NodeOffer> offers);

}  // namespace lockstep
