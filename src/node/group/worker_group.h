// WorkerGroup: the worker processes of one group, from start to end, epoch by epoch. It launches
// them, has them form a group, passes messages and monitors them. When one dies, hangs or gives up,
// pump() returns an error that names it, and the epoch is over. The others keep what they have
// loaded; ended processes are started again, and all form the group of the next epoch:
//
//   while (workers->pump(...).ok()) ...
//   workers->end_epoch();
//   while (!workers->settle(...)) ...
//   TRY(workers->form_again());  // and pump() again
//
// One thread uses it, the one that launched it, and that thread must outlive the workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/group/group_monitor.h"
#include "node/models/model_service.h"
#include "node/wire/control_channel.h"
#include "node/wire/messages.h"
#include "node/worker/worker_places.h"

namespace lockstep {

// Reports of the workers, called by pump(). Must be short.
class WorkerEvents {
 public:
  virtual ~WorkerEvents() = default;
  virtual void on_event(RequestEvent event) = 0;  // of rank 0's engine
  virtual void on_page_counts(int /*rank*/, const PageStoreCounts&) {}
  virtual void on_draft_counts(const DraftCounts&) {}
  virtual void on_link_readings(int /*rank*/, std::span<const LinkReading>) {}
  virtual void on_load_bytes(const LoadBytes&) {}  // of all ranks together, once all know theirs
  virtual void on_times(int /*rank*/, const CollectiveTimes&) {}
  virtual void on_pairs(std::span<const PairTimes>) {}
};

struct WorkerGroupOptions {
  // The same for every rank; rank and first_core are filled in.
  WorkerSetup setup;
  WorkerCommand command;                 // for ranks on this machine, without `places`
  std::shared_ptr<WorkerPlaces> places;  // null: all ranks are on this machine
  MonitorTimeouts timeouts;
  std::chrono::milliseconds load_timeout{600'000};
  // A rank that gave up more often than this, while no request was served, is started again too.
  int blames_max = 5;
};

class WorkerGroup {
 public:
  // Starts a process for each rank. Epochs count from 1.
  static Result<std::unique_ptr<WorkerGroup>> launch(const WorkerGroupOptions& options);
  ~WorkerGroup();  // end()
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // All ranks have joined the epoch: requests can be submitted.
  bool is_ready() const { return phase_ == Phase::kServing; }
  uint64_t epoch() const { return epoch_; }
  // Late arrivals from earlier epochs: connections that the ranks refused, frames that they
  // dropped.
  uint64_t late_calls() const;
  uint64_t late_frames() const;
  // Every linked pair of ranks, once ready.
  std::vector<PairStatus> links() const;
  bool has_ended() const;  // every process has exited, or is out of reach
  // Processes and, of loaded ranks, bytes.
  std::vector<RankStatus> ranks() const;
  QuantisationReport quantised() const;  // of all ranks together
  // The limits that the engine accepted, once ready.
  const LoadReport& report() const { return workers_[0]->report; }

  // Waits up to `limit` for messages, or for `wake_fd` to become readable, and handles them. An
  // error ends the epoch, or the attempt to form one: who broke it, and why.
  Status pump(int wake_fd, std::chrono::milliseconds limit, WorkerEvents& events);

  // Tells the ranks to leave the epoch, after an error.
  void end_epoch();
  // Waits like pump(). True once no rank is in the epoch: each has left, or its process has ended;
  // one that does not leave in time is killed.
  bool settle(int wake_fd, std::chrono::milliseconds limit, WorkerEvents& events);
  // Starts the ended processes again; pump() forms the next epoch when all are loaded. After an
  // error, for example of an unreachable node, it may be called again.
  Status form_again();

  // To rank 0. kExhausted: this request is too large; other failures are returned by pump().
  Status submit(uint64_t id, const GenerateRequest& request);
  void cancel(uint64_t id);

  // Kills a rank's process if it is still this one; pump() then finds that it has ended.
  void kill(int rank, int64_t pid);

  // Lets the step in flight finish; kills what has not exited after `limit`. Reports nothing more.
  void stop(std::chrono::milliseconds limit);
  // At once, with a short time for the ranks to leave in order. Reaps all processes.
  void end();

 private:
  struct Worker {
    std::unique_ptr<WorkerProcess> process;
    ControlChannel channel;
    LoadReport report{};
    LoadBytes bytes{};
    bool is_loaded = false;
    bool in_epoch = false;                     // it was ordered to join and has not left
    bool is_ready = false;                     // it has joined
    std::optional<RankListening> listening{};  // in the epoch that it joins
    int blames = 0;
    EpochReport epoch{};    // of the epoch it joined last
    bool is_going = false;  // it was killed, or has sent its last message
    bool ended = false;     // and the monitor knows
    std::optional<std::chrono::steady_clock::time_point> closed{};  // when its channel ended
  };
  using Time = std::chrono::steady_clock::time_point;
  enum class Phase {
    kLoading,  // until all are loaded
    kJoining,
    kServing,
    kLeaving,
  };

  explicit WorkerGroup(const WorkerGroupOptions& options) : options_(options) {}
  int size() const { return options_.setup.size(); }
  Worker& worker(int rank) { return *workers_[static_cast<size_t>(rank)]; }
  Result<std::unique_ptr<Worker>> start_worker(int rank) const;
  void watch();
  void look(int wake_fd, std::chrono::milliseconds limit, WorkerEvents& events);
  Status join_epoch();
  Status advance();
  static void kill_now(Worker& worker);
  Status time_out();
  void judge(const GroupMonitor::Verdict& verdict);
  void wait(int wake_fd, std::chrono::milliseconds limit);
  void read(int rank, WorkerEvents& events);
  Status handle(int rank, const ControlFrame& frame, WorkerEvents& events);
  Status handle_event(std::string_view payload, WorkerEvents& events);
  Status handle_state(int rank, const ControlFrame& frame);
  Status handle_bytes(Worker& worker, std::string_view payload, WorkerEvents& events);
  Status handle_port(Worker& worker, std::string_view payload);
  void misbehaved(int rank, const Error& error);
  void send(int rank, Message type, std::string_view payload, std::vector<UniqueFd> fds = {});
  void reap(int rank);
  bool wait_ended(std::chrono::milliseconds limit);

  WorkerGroupOptions options_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by rank
  Phase phase_ = Phase::kLoading;
  uint64_t epoch_ = 0;
  Time phase_deadline_;  // of all but serving
  std::optional<GroupMonitor> monitor_;
  Time looked_;  // the end of the last pump()
};

}  // namespace lockstep
