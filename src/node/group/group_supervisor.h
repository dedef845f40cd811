// GroupSupervisor: a model served by a group of worker processes that this machine supervises; they
// run here, or where WorkerPlaces puts them. It starts them, submits requests, monitors them, and
// forms the group again when one dies, hangs or gives up: only ended processes are started and
// loaded again. open(), start(), stop() and the destructor: one thread, and not from a callback.
// The rest: any thread.
//
// Events of requests are reported from the group's supervising thread, which also monitors the
// workers: they must be short. They may be called before generate() returns; they may call
// generate(), cancel() and status().
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/meters/rate_window.h"
#include "base/result.h"
#include "base/threads/wake_pipe.h"
#include "node/group/worker_group.h"
#include "node/models/model_folder.h"
#include "node/models/model_service.h"
#include "node/requests/request_table.h"
#include "node/worker/disk_cache.h"
#include "node/worker/worker_places.h"

namespace lockstep {

struct GroupSupervisorOptions {
  GroupSpec spec;
  std::string name;               // empty: the folder's
  int queue_max = kQueueDefault;  // requests beyond those that run together
  DiskCache disk_cache{};         // of ranks on this machine; other nodes have their own

  MonitorTimeouts timeouts;
  std::chrono::milliseconds load_timeout{600'000};
  // How long the first start may wait for a node that is unreachable or not prepared.
  std::chrono::milliseconds prepare_timeout{600'000};
  std::chrono::milliseconds restart_wait{5'000};  // how long a request waits for a restart
  // For the step in flight, and for pages of state that are not on disk yet.
  std::chrono::milliseconds stop_timeout{4'000};
  // How long a running request waits for the group to form again, and how many losses in a row
  // without a token it survives (0: it ends with the group it ran on).
  std::chrono::milliseconds resume_wait{600'000};
  int losses_max = 3;
  int failures_max = 5;  // in a row, without becoming ready
  bool restarts = true;  // false: the first failure is final

  std::string worker_program;                 // empty: this program
  std::vector<std::string> worker_arguments;  // empty: "worker"
  std::shared_ptr<WorkerPlaces> places;       // null: all ranks here, by the two above

  // Each change of state, with the reason if it is a failure. From the supervising thread; must be
  // short, and must not call stop().
  std::function<void(ModelStatus::State, const std::string& reason)> on_state;
};

class GroupSupervisor final : public ModelService, private WorkerEvents {
 public:
  static constexpr int kRanksMax = 64;
  static constexpr std::chrono::milliseconds kLookPeriod{200};

  // Checks the options, reads the model's folder, and returns: the state is kLoading, and requests
  // wait for restart_wait.
  static Result<std::unique_ptr<GroupSupervisor>> open(GroupSupervisorOptions options);
  // open(), but returns when all ranks are ready, or with the first error; then nothing of the
  // group is left. Meanwhile `on_look` gets the status every kLookPeriod, on the caller's thread.
  static Result<std::unique_ptr<GroupSupervisor>> start(
      GroupSupervisorOptions options, const std::function<void(const ModelStatus&)>& on_look = {});
  ~GroupSupervisor() override;  // stop()

  // Ends every request with kCancelled and every worker, even while loading. Takes little more than
  // stop_timeout.
  void stop();

  std::shared_ptr<const Tokenizer> tokenizer() const override { return folder_.tokenizer; }
  ModelStatus status() const override;
  std::vector<int32_t> stop_ids() const override { return folder_.stop_ids; }
  ModelChatFormat chat_format() const override { return folder_.chat_format; }
  SamplingDefaults sampling_defaults() const override { return folder_.sampling; }
  ModelCard card() const override { return folder_.card; }
  Result<uint64_t> generate(GenerateRequest request, EventSink events) override;
  void cancel(uint64_t request) override;

  // Kills the worker of a rank (none: the highest), as a machine that loses power would; the group
  // then forms again like after any loss. Returns the worker as it was, without waiting for its
  // end. kInvalidArgument: there is no such rank; kPeerLost: the group is not serving.
  Result<RankStatus> kill_worker(std::optional<int> rank);

 private:
  // From other threads to the supervising one.
  struct Submitted {
    uint64_t id = 0;
    GenerateRequest request;
    EventSink events;
  };
  struct Inbox {
    std::vector<Submitted> submitted;
    std::vector<uint64_t> cancelled;
    std::vector<RankStatus> killed;
  };

  GroupSupervisor(GroupSupervisorOptions options, ModelFolder folder, WakePipe wake);
  WorkerGroupOptions worker_options() const;
  Status check(const GenerateRequest& request) const;

  // The supervising thread.
  void supervise();
  Status work();
  Result<std::unique_ptr<WorkerGroup>> launch();
  void hold(std::chrono::milliseconds pause);
  Status serve(WorkerGroup& workers, bool* was_ready);
  void take_inbox(WorkerGroup* workers);
  void announce_ready(const WorkerGroup& workers);
  void announce_restart(const Error& error);
  Status form_again(WorkerGroup& workers, std::chrono::milliseconds pause);
  void finish(ModelStatus::State state, const Error& reason);
  void tell(ModelStatus::State state, const std::string& reason) const;
  bool is_stopping() const;

  void on_event(RequestEvent event) override { requests_.take(std::move(event)); }
  void on_page_counts(int rank, const PageStoreCounts& counts) override;
  void on_draft_counts(const DraftCounts& counts) override;
  void on_link_readings(int rank, std::span<const LinkReading> links) override;
  void on_load_bytes(const LoadBytes& bytes) override;

  const GroupSupervisorOptions options_;
  const ModelFolder folder_;
  const WakePipe wake_;
  RequestTable requests_;  // the supervising thread's

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable started_;
  ModelStatus status_;
  RateWindow load_rate_;                // of status_.loading
  std::vector<RateWindow> link_rates_;  // of status_.links
  Error start_error_{ErrorCode::kInternal, ""};
  Inbox inbox_;
  bool stopping_ = false;
  uint64_t next_id_ = 1;

  std::thread thread_;
};

}  // namespace lockstep
