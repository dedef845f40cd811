#include "node/worker/worker_places.h"

#include <utility>

#include "base/process/child_process.h"
#include "base/process/core_dumps.h"
#include "node/wire/control_channel.h"

namespace lockstep {
namespace {

class ChildWorker final : public WorkerProcess {
 public:
  explicit ChildWorker(ChildProcess process) : process_(std::move(process)) {}

  int64_t pid() const override { return process_.pid(); }
  std::optional<std::string> poll_exit() override { return sentence(process_.poll_exit()); }
  std::optional<std::string> wait_exit(std::chrono::milliseconds limit) override {
    return sentence(process_.wait_exit(limit));
  }
  void kill_now() override { process_.kill_now(); }

 private:
  static std::optional<std::string> sentence(std::optional<ChildExit> exit) {
    if (!exit) return std::nullopt;
    return describe(*exit);
  }

  ChildProcess process_;
};

class LocalPlaces final : public WorkerPlaces {
 public:
  LocalPlaces(WorkerCommand command, int ranks) : command_(std::move(command)), ranks_(ranks) {}

  Result<StartedWorker> start(int) override {
    return start_worker_process(command_, {.machine_ranks = ranks_});
  }
  std::string node_name(int) const override { return {}; }

 private:
  const WorkerCommand command_;
  const int ranks_;
};

}  // namespace

Result<StartedWorker> start_worker_process(const WorkerCommand& command, WorkerFlags flags) {
  auto [ours, theirs] = TRY(control_socket_pair());
  flags.control_fd = ChildProcess::kFirstInheritedFd;
  flags.cache = command.cache;
  flags.device = command.device;
  flags.forbids_core_dumps = are_core_dumps_forbidden();
  ChildProcess::Options child;
  child.program = command.program.empty() ? TRY(own_program()) : command.program;
  child.arguments = command.arguments;
  if (child.arguments.empty()) child.arguments = {"worker"};
  for (std::string& argument : worker_arguments(flags)) {
    child.arguments.push_back(std::move(argument));
  }
  child.inherited = {theirs.get()};
  ChildProcess process = TRY(ChildProcess::start(child));
  return StartedWorker{std::make_unique<ChildWorker>(std::move(process)), std::move(ours)};
}

std::unique_ptr<WorkerPlaces> local_worker_places(WorkerCommand command, int ranks) {
  return std::make_unique<LocalPlaces>(std::move(command), ranks);
}

}  // namespace lockstep
