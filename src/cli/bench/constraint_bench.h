// `lockstep bench constraint`: the time that a constraint of the answer adds to a token.
#pragma once

#include "base/result.h"
#include "cli/bench/shape_bench.h"
#include "json/json.h"

namespace lockstep {

struct ConstraintBenchFlags {
  ModelOrShapeFlags model;  // a shape's folder has a tokenizer next to its config.json
  int new_tokens = 64;      // per answer
  int repetitions = 5;      // answers of each kind, in turn
};

Result<Json> bench_constraint(const ConstraintBenchFlags& flags);
void print_constraint_bench(const Json& result);

}  // namespace lockstep
