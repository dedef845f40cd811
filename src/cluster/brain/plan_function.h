// How the coordinator asks for placements: a function from a model and the nodes' offers to the
// ranks of groups, or to a sentence that says exactly why not. The planner provides the real one;
// split_groups() is the simplest correct one, for tests and for models of which only the size is
// known. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/brain/messages.h"
#include "cluster/part.h"
#include "cluster/state/desired_state.h"

namespace lockstep {

struct NodeOffer {
  NodeId node;
  std::string name{};  // for sentences
  int64_t free_bytes = 0;
  int64_t speed = 0;                     // bytes/s
  int64_t operations_s = 0;              // of prompts; 0: not known
  int64_t link_bytes_s = 0;              // of its network; 0: not known
  std::vector<RoundTrip> round_trips{};  // measured by this node
};

// As many groups as fit, at least one and at most `groups`, each complete and no two on one node.
// kExhausted: not even one fits. Called rarely (when something has changed, or every few seconds
// for a model that does not fit), on the brain's thread, which also sends heartbeats, so it never
// plans there: kTimeout says that the plan is being made elsewhere, or that its data are still
// being read or fetched, which is no refusal. Brain::plan_again() follows, and the same call then
// has the answer.
using PlanFunction = std::function<Result<std::vector<RankPlan>>(
    const DesiredEntry& entry, size_t groups, std::span<const NodeOffer> offers)>;

// One rank per node on the fewest nodes that suffice, those with most memory first; each gets bytes
// in proportion to its free memory.
Result<RankPlan> split_by_memory(const DesiredEntry& entry, int64_t model_bytes,
                                 std::span<const NodeOffer> offers);
// split_by_memory() for one group after the other, each on the nodes left over.
Result<std::vector<RankPlan>> split_groups(const DesiredEntry& entry, size_t groups,
                                           int64_t model_bytes, std::span<const NodeOffer> offers);

}  // namespace lockstep
