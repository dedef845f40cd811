// The time of an all-reduce between processes of this machine, the ones that a model's ranks would
// be. Used by `lockstep bench collective`.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "collective/algorithm.h"
#include "collective/bench.h"
#include "collective/wire.h"
#include "node/measuring_workers.h"

namespace lockstep {

struct CollectiveBenchOptions : MeasuringOptions {
  SumAlgorithm algorithm = SumAlgorithm::kAuto;
  Wire wire = Wire::kF32;
  size_t bytes = 16384;
  int rounds = 10'000;
};

// Of each figure the slowest rank's. Starts the processes, measures once, and ends them.
Result<CollectiveTimes> bench_collective_processes(const CollectiveBenchOptions& options);

}  // namespace lockstep
