// The output of `lockstep plan` as a table, and that of its check also as JSON.
#pragma once

#include "json/json.h"
#include "planner/check.h"
#include "planner/plan_json.h"

namespace lockstep {

void print_plan(const PlanSubject& subject, const ClusterFacts& cluster, const ModelPlan& plan);

Json check_json(const CheckResult& result, bool is_fitted);
void print_check(const CheckResult& result, bool is_fitted);

}  // namespace lockstep
