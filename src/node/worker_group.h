// WorkerGroup: the worker processes of one group from their start to their end, for one epoch. It
// launches them, passes messages and watches over them; when one dies or hangs pump() returns an
// error that names it, and the group can only be ended. One thread uses it, the one that launched
// it, and that thread must outlive the workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/result.h"
#include "node/control_channel.h"
#include "node/group_monitor.h"
#include "node/messages.h"
#include "node/model_service.h"

namespace lockstep {

// What arrives from the workers, called by pump(). Calls must be short.
class WorkerEvents {
 public:
  virtual ~WorkerEvents() = default;
  virtual void on_token(uint64_t request, int32_t token) = 0;
  virtual void on_logits(uint64_t request, std::span<const float> row) = 0;
  virtual void on_end(uint64_t request, Result<FinishReason> outcome) = 0;
  virtual void on_times(int rank, const CollectiveTimes& times) = 0;
  virtual void on_pairs(std::span<const PairTimes> pairs) = 0;
};

struct WorkerGroupOptions {
  // The same for every rank; rank, link_fds, token, epoch and first_core are filled in.
  WorkerSetup setup;
  bool pin_threads = false;            // rank r's team on cores [r * threads, (r + 1) * threads)
  std::string program;                 // empty: this program
  std::vector<std::string> arguments;  // before "--control-fd N"; empty: "worker"
  MonitorTimeouts timeouts;
};

class WorkerGroup {
 public:
  static Result<std::unique_ptr<WorkerGroup>> launch(const WorkerGroupOptions& options,
                                                     uint64_t epoch);
  ~WorkerGroup();  // end()
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  bool is_ready() const { return monitor_->is_ready(); }
  bool has_ended() const;  // every process has exited
  // Processes and, of ready ranks, bytes.
  std::vector<RankStatus> ranks() const;
  QuantisationReport quantised() const;  // of all ranks together
  // What the engine agreed to, once ready.
  const LoadReport& report() const { return workers_[0].report; }

  // Waits up to `limit` for messages, or for `wake_fd` to become readable, and handles them. An
  // error is the end of the group: who broke it, and why.
  Status pump(int wake_fd, std::chrono::milliseconds limit, WorkerEvents& events);

  // To rank 0. kExhausted: this request is too large; other failures show in pump().
  Status submit(uint64_t id, const GenerateRequest& request);
  void cancel(uint64_t id);

  // Lets the step at hand finish; what has not exited after `limit` is killed. Nothing more is
  // reported.
  void stop(std::chrono::milliseconds limit);
  // At once, with a short time for the ranks to leave in order. Reaps all.
  void end();

 private:
  struct Worker {
    ChildProcess process;
    ControlChannel channel;
    LoadReport report;
    bool ready = false;
    int port = -1;
    bool ended = false;                                           // and the monitor knows
    std::optional<std::chrono::steady_clock::time_point> closed;  // when its channel ended
  };
  using Time = std::chrono::steady_clock::time_point;

  explicit WorkerGroup(const WorkerGroupOptions& options) : options_(options) {}
  Status start_worker(const WorkerSetup& setup, const std::vector<int>& shared);
  void wait(int wake_fd, std::chrono::milliseconds limit);
  void read(int rank, WorkerEvents& events);
  Status handle(int rank, const ControlFrame& frame, WorkerEvents& events);
  Status handle_port(Worker& worker, std::string_view payload);
  void send(int rank, Message type, std::string_view payload);
  void reap(int rank);
  bool wait_ended(std::chrono::milliseconds limit);

  WorkerGroupOptions options_;
  std::vector<Worker> workers_;
  std::optional<GroupMonitor> monitor_;
  Time looked_;  // the end of the last pump()
};

}  // namespace lockstep
