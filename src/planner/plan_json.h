// A plan as JSON, for `lockstep plan --json` and POST /cluster/plan. Pure.
#pragma once

#include <string>

#include "json/json.h"
#include "planner/plan.h"

namespace lockstep {

struct PlanSubject {
  std::string model;
  std::string draft_model;  // empty: none
  std::string format;       // of a shape's weights; empty for a checkpoint
  PlanRequest request;
};

// docs/command-line.md describes it.
Json plan_json(const PlanSubject& subject, const ClusterFacts& cluster, const ModelPlan& plan);

}  // namespace lockstep
