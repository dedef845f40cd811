// Latency and bandwidth of all pairs of ranks, between processes of this machine, as a model's
// ranks would run. Used by `lockstep probe`.
#pragma once

#include <vector>

#include "base/result.h"
#include "collective/group/probe.h"
#include "node/network/measuring_workers.h"

namespace lockstep {

// Starts the processes, measures each pair in turn, and ends them.
Result<std::vector<PairTimes>> probe_processes(const MeasuringOptions& options);

}  // namespace lockstep
