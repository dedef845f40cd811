// Which placements of a model on some machines are sensible, how fast each would be, and which one
// to choose. A pure function in polynomial time: machines are tried in a few orders (by speed, by
// memory, by distance), in groups of every size from the front of each, and divided into every
// number of groups (planner/partition.h). For `lockstep plan` and for clusters that place models
// themselves.
#pragma once

#include <string>
#include <vector>

#include "planner/place_group.h"

namespace lockstep {

struct PlannedPlacement {
  Placement placement;
  int streams = 1;             // of all groups
  StepTime token;              // of one stream at the whole context, in the slowest group
  double decode_tok_s = 0;     // of one stream at the whole context
  double short_tok_s = 0;      // of one stream at its beginning
  double total_tok_s = 0;      // of all streams together, at the whole context
  double draft_tok_s = 0;      // of one stream there, with guesses; 0: nothing guesses
  double first_token_s = 0;    // 0: not known
  double joule_per_token = 0;  // 0: not known
  double price_usd = 0;        // of its machines; 0: not known
  bool has_estimates = false;
  size_t misfits = 0;          // ranks that lack memory
  uint64_t lacking_bytes = 0;  // of all of them
};

struct ModelPlan {
  // The best per kind and number of machines and groups: the choice first, then by falling speed.
  // Speed is that of one stream, or of all together if several are promised.
  std::vector<PlannedPlacement> fitting;
  // Those with no fitting variant, the one that lacks least first.
  std::vector<PlannedPlacement> refused;
  std::string explanation;  // of the choice, one paragraph
};

// A placement must be faster by more than this to use more machines.
inline constexpr double kWorthAnotherMachine = 1.03;

// kInvalidArgument for a request that no placement can meet (a context beyond the model's), and
// errors of RankCounter.
Result<ModelPlan> plan_model(const ModelFacts& facts, const ClusterFacts& cluster,
                             const PlanRequest& request);

}  // namespace lockstep
