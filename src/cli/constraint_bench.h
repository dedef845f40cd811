// `lockstep bench constraint`: what a constraint of the answer adds to the time of a token.
#pragma once

#include "base/result.h"
#include "cli/shape_bench.h"
#include "json/json.h"

namespace lockstep {

struct ConstraintBenchFlags {
  ModelOrShapeFlags model;  // beside the config.json of a shape lies a tokenizer
  int new_tokens = 64;      // of an answer
  int repetitions = 5;      // answers of each kind, in turn
};

Result<Json> bench_constraint(const ConstraintBenchFlags& flags);
void print_constraint_bench(const Json& result);

}  // namespace lockstep
