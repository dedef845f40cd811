// Times an all-reduce between processes of this machine, as a model's ranks would run it. Used by
// `lockstep bench collective`.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "collective/group/bench.h"
#include "collective/plan/algorithm.h"
#include "collective/plan/wire.h"
#include "node/network/measuring_workers.h"

namespace lockstep {

struct CollectiveBenchOptions : MeasuringOptions {
  SumAlgorithm algorithm = SumAlgorithm::kAuto;
  Wire wire = Wire::kF32;
  size_t bytes = 16384;
  int rounds = 10'000;
};

// Each figure is the slowest rank's. Starts the processes, measures once, and ends them.
Result<CollectiveTimes> bench_collective_processes(const CollectiveBenchOptions& options);

}  // namespace lockstep
