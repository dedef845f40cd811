// WorkerFlags: a worker's command line, written by the node that starts it. The set-up, which
// arrives over the control channel from the node that leads the group, is the same for every
// machine; these are what only the worker's own machine knows. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/wire/data_paths.h"
#include "node/worker/disk_cache.h"

namespace lockstep {

// Where this machine has the files of GroupSpec::model and draft_model; empty: as in the set-up.
struct LocalPaths {
  std::string model{};
  std::string draft_model{};

  bool operator==(const LocalPaths&) const = default;
};

struct WorkerFlags {
  int control_fd = -1;
  LocalPaths files{};
  // By rank: the numeric address at which this machine reaches it, and for the worker's own rank
  // the one to listen on, "0.0.0.0" or "::" for all. Empty: all ranks are on this machine.
  std::vector<std::string> hosts{};
  // By rank: how this machine reaches it over data networks, instead of at its host. Empty: there
  // is none.
  std::vector<DataPaths> paths{};
  int machine_ranks = 1;  // of the group on this machine, which share its cores
  DiskCache cache{};
  std::string device{};             // where ranks of this machine compute; empty: as in the set-up
  bool forbids_core_dumps = false;  // as the node does (base/process/core_dumps.h)
};

// The ranks of one group on one machine, and how they reach the others.
struct MachineHosts {
  std::vector<int> ranks{};
  // By rank of the whole group: the numeric address at which this machine reaches its machine; for
  // this machine's own ranks the one to listen on.
  std::vector<std::string> hosts{};
  std::vector<DataPaths> paths{};  // as in WorkerFlags
};

// For one of the machine's ranks. Ranks of one machine meet at loopback, unless they listen
// elsewhere.
WorkerFlags flags_of_rank(int rank, const LocalPaths& files, const MachineHosts& machine);
// "--control-fd", "3", "--model", ...
std::vector<std::string> worker_arguments(const WorkerFlags& flags);
// kInvalidArgument names the invalid flag.
Result<WorkerFlags> parse_worker_arguments(std::span<char* const> arguments);

}  // namespace lockstep
