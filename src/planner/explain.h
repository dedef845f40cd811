// Why a placement was chosen, in words.
#pragma once

#include <string>

#include "planner/plan.h"

namespace lockstep {

// One paragraph about `plan.fitting.front()`, or about what is lacking if nothing fits.
std::string explain(const ModelFacts& facts, const ClusterFacts& cluster,
                    const PlanRequest& request, const ModelPlan& plan);

// "tensor over 4 machines", "2 replicas of 2 machines each (tensor)".
std::string placement_text(const Placement& placement);

// For a placement that does not fit: the rank that lacks most, with exact figures; empty for one
// that fits.
std::string lack_text(const ClusterFacts& cluster, const PlannedPlacement& plan);

// "142.10 GiB".
std::string gib_text(uint64_t bytes);

// For a model that does not fit: the rest of a sentence, after a semicolon, about its table of
// n-grams in memory; empty if it has none.
std::string ngrams_hint(const ModelFacts& facts);

}  // namespace lockstep
