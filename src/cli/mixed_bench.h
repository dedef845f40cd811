// `lockstep bench mixed`: what a long prompt does to streams that are being generated: the times
// between two of their tokens, alone and while the prompt is fed beside them.
#pragma once

#include "base/result.h"
#include "cli/shape_bench.h"
#include "json/json.h"

namespace lockstep {

struct MixedBenchFlags {
  ModelOrShapeFlags model;
  int streams = 4;
  int prompt_tokens = 4096;
  int new_tokens = 128;  // of each stream before the prompt comes
  int repetitions = 1;   // prompts, one after the other
};

Result<Json> bench_mixed(const MixedBenchFlags& flags);
void print_mixed_bench(const Json& result);

}  // namespace lockstep
