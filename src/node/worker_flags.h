// WorkerFlags: what a worker process is told on its command line by the node that starts it. The
// set-up, which comes over the control channel from the node that leads the group, is the same for
// every machine; this is what only the worker's own machine knows. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/disk_cache.h"

namespace lockstep {

struct WorkerFlags {
  int control_fd = -1;
  std::string model{};  // where the model lies here; empty: where the set-up says
  // By rank: the numeric address at which this machine reaches it, and for the worker's own rank
  // the one to listen on, "0.0.0.0" or "::" for all. Empty: all ranks are on this machine.
  std::vector<std::string> hosts{};
  int machine_ranks = 1;  // of the group on this machine, which share its cores
  DiskCache cache{};
};

// The ranks of one group on one machine, and how they reach the others.
struct MachineHosts {
  std::vector<int> ranks{};
  // By rank of the whole group: the numeric address at which this machine reaches its machine; of
  // this machine's own ranks the one to listen on.
  std::vector<std::string> hosts{};
};

// Of one of the machine's ranks. Those of one machine meet at loopback, unless they listen
// elsewhere.
WorkerFlags flags_of_rank(int rank, const std::string& model, const MachineHosts& machine);
// "--control-fd", "3", "--model", ...
std::vector<std::string> worker_arguments(const WorkerFlags& flags);
// kInvalidArgument names the flag that makes no sense.
Result<WorkerFlags> parse_worker_arguments(std::span<char* const> arguments);

}  // namespace lockstep
