// WorkerPlaces: where the processes of a group's ranks run: on this machine, or on other nodes of
// the cluster. WorkerGroup starts every rank through it and cannot tell the difference: it gets a
// control descriptor, and a WorkerProcess that reports how the process ended.
//
// The supervising thread of a group uses these objects; start() may block it for a few seconds.
// WorkerPlaces::stop() may be called by any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/result.h"
#include "node/worker/worker_flags.h"

namespace lockstep {

// One process. The destructor ends it.
class WorkerProcess {
 public:
  virtual ~WorkerProcess() = default;
  virtual int64_t pid() const = 0;  // on its own machine; 0: not known
  // How it ended: "was killed by signal 9 (SIGKILL)", "is out of reach: ..."; nullopt while it
  // runs.
  virtual std::optional<std::string> poll_exit() = 0;
  virtual std::optional<std::string> wait_exit(std::chrono::milliseconds limit) = 0;
  // Does not wait. A process that is out of reach counts as ended at once.
  virtual void kill_now() = 0;
};

struct StartedWorker {
  std::unique_ptr<WorkerProcess> process;
  UniqueFd control;  // the node's end, non-blocking
};

class WorkerPlaces {
 public:
  virtual ~WorkerPlaces() = default;
  // kPeerLost: this rank's node is unreachable, or not prepared for it yet.
  virtual Result<StartedWorker> start(int rank) = 0;
  // For messages and the status; empty: this machine.
  virtual std::string node_name(int rank) const = 0;
  // The group ends: a waiting start() returns with kCancelled at once, and so does every later one.
  virtual void stop() {}
};

// How a rank's process on this machine is started.
struct WorkerCommand {
  std::string program;                 // empty: this program
  std::vector<std::string> arguments;  // before the flags; empty: "worker"
  DiskCache cache{};                   // this machine's
  std::string device{};                // where ranks here compute; empty: as the group says
};

// A child process. Flags common to all workers of this process are filled in.
Result<StartedWorker> start_worker_process(const WorkerCommand& command, WorkerFlags flags);

// All `ranks` on this machine.
std::unique_ptr<WorkerPlaces> local_worker_places(WorkerCommand command, int ranks);

}  // namespace lockstep
