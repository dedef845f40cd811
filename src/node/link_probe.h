// Latency and bandwidth of all pairs of ranks, between processes of this machine, the ones that a
// model's ranks would be. Used by `lockstep probe`.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "collective/probe.h"
#include "transport/link_options.h"

namespace lockstep {

struct LinkProbeOptions {
  int ranks = 2;
  LinkOptions link;
  bool pin_threads = true;  // one core for each rank, where there are so many
  std::chrono::milliseconds timeout{120'000};
  std::string worker_program;  // as in LocalGroupOptions
  std::vector<std::string> worker_arguments;
};

// Starts the processes, measures each pair in turn, and ends them.
Result<std::vector<PairTimes>> probe_processes(const LinkProbeOptions& options);

}  // namespace lockstep
