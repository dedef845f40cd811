// `lockstep bench placement`: checks the planner. On emulated clusters
// (cli/bench/emulated_clusters.h) it measures machines and links, predicts every sensible
// placement, runs all of them, and compares the speeds, and the planner's choice with the best one.
#pragma once

#include <string>

#include "base/result.h"
#include "json/json.h"

namespace lockstep {

struct PlacementBenchFlags {
  std::string clusters;  // "4", "1..12"; empty: all
  int new_tokens = 6;
  int repetitions = 5;
};

Result<Json> bench_placement(const PlacementBenchFlags& flags);
void print_placement_bench(const Json& result);

}  // namespace lockstep
