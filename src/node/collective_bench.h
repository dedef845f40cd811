// The time of an all-reduce between processes of this machine, the ones that a model's ranks would
// be. Used by `lockstep bench collective`.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "collective/algorithm.h"
#include "collective/bench.h"
#include "collective/wire.h"
#include "transport/link_options.h"

namespace lockstep {

struct CollectiveBenchOptions {
  int ranks = 2;
  LinkOptions link;
  SumAlgorithm algorithm = SumAlgorithm::kAuto;
  Wire wire = Wire::kF32;
  size_t bytes = 16384;
  int rounds = 10'000;
  bool pin_threads = true;  // one core for each rank, where there are so many
  std::chrono::milliseconds timeout{120'000};
  std::string worker_program;  // as in LocalGroupOptions
  std::vector<std::string> worker_arguments;
};

// Of each figure the slowest rank's. Starts the processes, measures once, and ends them.
Result<CollectiveTimes> bench_collective_processes(const CollectiveBenchOptions& options);

}  // namespace lockstep
