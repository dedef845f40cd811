// `lockstep bench mixed`: how a long prompt slows down running streams: the times between their
// tokens, alone and while the prompt is fed.
#pragma once

#include "base/result.h"
#include "cli/bench/shape_bench.h"
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
