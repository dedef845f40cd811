// WorkerPlaces: where the processes of a group's ranks run: on this machine, or on other nodes of
// the cluster. WorkerGroup starts every rank through it and cannot tell the difference: it has a
// control descriptor to write to, and somebody to ask how the process ended.
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

#include "base/result.h"
#include "base/unique_fd.h"
#include "node/worker_flags.h"

namespace lockstep {

// One process. The destructor ends it.
class WorkerProcess {
 public:
  virtual ~WorkerProcess() = default;
  virtual int64_t pid() const = 0;  // on its own machine; 0: not known
  // How it ended: "was killed by signal 9 (SIGKILL)", "is out of reach: ..." ; nothing while it
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
  // kPeerLost: the node of this rank cannot be reached, or is not prepared for it yet.
  virtual Result<StartedWorker> start(int rank) = 0;
  // For sentences and the status; empty: this machine.
  virtual std::string node_name(int rank) const = 0;
  // The group ends: a start() that waits returns with kCancelled at once, and so does every later
  // one.
  virtual void stop() {}
};

// What a process of a rank on this machine is started with.
struct WorkerCommand {
  std::string program;                 // empty: this program
  std::vector<std::string> arguments;  // before the flags; empty: "worker"
  DiskCache cache{};                   // this machine's
};

// A child process. `flags.control_fd` is filled in.
Result<StartedWorker> start_worker_process(const WorkerCommand& command, WorkerFlags flags);

// All `ranks` on this machine.
std::unique_ptr<WorkerPlaces> local_worker_places(WorkerCommand command, int ranks);

}  // namespace lockstep
