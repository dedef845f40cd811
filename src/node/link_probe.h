// Latency and bandwidth of all pairs of ranks, between processes of this machine, the ones that a
// model's ranks would be. Used by `lockstep probe`.
#pragma once

#include <vector>

#include "base/result.h"
#include "collective/probe.h"
#include "node/measuring_workers.h"

namespace lockstep {

// Starts the processes, measures each pair in turn, and ends them.
Result<std::vector<PairTimes>> probe_processes(const MeasuringOptions& options);

}  // namespace lockstep
