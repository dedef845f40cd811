// The output of `lockstep plan`, as a table or JSON.
#pragma once

#include <string>

#include "json/json.h"
#include "planner/check.h"
#include "planner/plan.h"

namespace lockstep {

struct PlanSubject {
  std::string model;
  std::string format;  // of a shape's weights; empty for a checkpoint
  PlanRequest request;
};

Json plan_json(const PlanSubject& subject, const ClusterFacts& cluster, const ModelPlan& plan);
void print_plan(const PlanSubject& subject, const ClusterFacts& cluster, const ModelPlan& plan);

Json check_json(const CheckResult& result, bool is_fitted);
void print_check(const CheckResult& result, bool is_fitted);

}  // namespace lockstep
