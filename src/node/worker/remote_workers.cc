#include "node/worker/remote_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "net/frames/fd_relay.h"
#include "node/wire/control_channel.h"
#include "node/worker/worker_stream.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

// One process on another node, from the request for it to its end. Carries what the loop's thread
// learns to the group's thread. Loop handles are used and destroyed on its thread only: close().
class RemoteProcess : public std::enable_shared_from_this<RemoteProcess> {
 public:
  RemoteProcess(EventLoop& loop, UniqueFd relayed) : loop_(loop), relayed_(std::move(relayed)) {}

  // Any thread.
  Status wait_started(milliseconds limit);
  int64_t pid() const;
  std::optional<std::string> wait_ended(milliseconds limit) const;
  // From now on it counts as ended, in this way unless it has ended already.
  void give_up(ErrorCode code, std::string how);

  // The loop's thread.
  void on_stream(Result<FrameConnection> opened);

 private:
  void on_answer(std::string_view frame);
  void settle(ErrorCode code, std::string how);
  void close();

  EventLoop& loop_;
  // Used by the loop's thread.
  UniqueFd relayed_;
  FrameConnection connection_;
  FdRelay relay_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  bool has_started_ = false;
  int64_t pid_ = 0;
  std::optional<Error> ended_;
};

Status RemoteProcess::wait_started(milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return has_started_ || ended_; });
  if (has_started_) return Ok{};
  if (ended_) return *ended_;
  return Error{ErrorCode::kTimeout, fmt::format("no answer within {} ms", limit.count())};
}

int64_t RemoteProcess::pid() const {
  std::lock_guard lock(mutex_);
  return pid_;
}

std::optional<std::string> RemoteProcess::wait_ended(milliseconds limit) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return ended_.has_value(); });
  if (!ended_) return std::nullopt;
  return ended_->message;
}

void RemoteProcess::give_up(ErrorCode code, std::string how) {
  settle(code, std::move(how));
  loop_.post([self = shared_from_this()] { self->close(); });
}

// The first outcome wins.
void RemoteProcess::settle(ErrorCode code, std::string how) {
  std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = Error{code, std::move(how)};
  changed_.notify_all();
}

void RemoteProcess::close() {
  relay_.stop();
  connection_.close();
  connection_ = {};
  relayed_.reset();
}

void RemoteProcess::on_stream(Result<FrameConnection> opened) {
  if (!opened.ok()) return settle(ErrorCode::kPeerLost, std::move(opened.error().message));
  connection_ = std::move(opened.value());
  if (wait_ended(milliseconds(0))) return close();  // given up meanwhile
  const auto self = shared_from_this();
  connection_.set_events(
      {.on_frame = [self](const std::string& frame) { self->on_answer(frame); },
       .on_close =
           [self](const Error& error) { self->settle(ErrorCode::kPeerLost, error.message); },
       .on_drained = {}});
  if (!connection_.is_open()) settle(ErrorCode::kPeerLost, "the other end closed the connection");
}

void RemoteProcess::on_answer(std::string_view frame) {
  const Result<int64_t> pid = decode_worker_answer(frame);
  if (!pid.ok()) {
    settle(pid.error().code, pid.error().message);
    return close();
  }
  relay_ = FdRelay::start(
      loop_, std::move(relayed_), connection_, [self = shared_from_this()](const Error& error) {
        const bool is_told = error.code == ErrorCode::kCancelled;
        self->settle(error.code, is_told ? error.message : "cannot be reached: " + error.message);
      });
  std::lock_guard lock(mutex_);
  has_started_ = true;
  pid_ = pid.value();
  changed_.notify_all();
}

// The group's handle.
class RemoteWorker final : public WorkerProcess {
 public:
  explicit RemoteWorker(std::shared_ptr<RemoteProcess> process) : process_(std::move(process)) {}
  ~RemoteWorker() override { RemoteWorker::kill_now(); }

  int64_t pid() const override { return process_->pid(); }
  std::optional<std::string> poll_exit() override { return wait_exit(milliseconds(0)); }
  std::optional<std::string> wait_exit(milliseconds limit) override {
    return process_->wait_ended(limit);
  }
  // Its node ends it when the stream ends, or when it notices that this node is gone.
  void kill_now() override { process_->give_up(ErrorCode::kCancelled, "was killed"); }

 private:
  const std::shared_ptr<RemoteProcess> process_;
};

class ClusterPlaces final : public WorkerPlaces {
 public:
  ClusterPlaces(EventLoop& loop, Peers& peers, ClusterPlacesOptions options)
      : loop_(loop), peers_(peers), options_(std::move(options)) {}

  Result<StartedWorker> start(int rank) override;
  std::string node_name(int rank) const override { return is_own(rank) ? "" : name(rank); }
  void stop() override;

 private:
  const RankPlace& place(int rank) const { return options_.ranks[static_cast<size_t>(rank)]; }
  bool is_own(int rank) const { return place(rank).node == options_.own; }
  std::string name(int rank) const {
    return place(rank).name.empty() ? place(rank).node.short_text() : place(rank).name;
  }
  Result<StartedWorker> start_remote(int rank);
  bool set_starting(std::shared_ptr<RemoteProcess> process);

  EventLoop& loop_;
  Peers& peers_;
  const ClusterPlacesOptions options_;

  std::mutex mutex_;  // guards what follows
  bool is_stopped_ = false;
  std::shared_ptr<RemoteProcess> starting_;  // awaited by start()
};

Result<StartedWorker> ClusterPlaces::start(int rank) {
  if (!is_own(rank)) return start_remote(rank);
  return start_worker_process(options_.command,
                              flags_of_rank(rank, options_.files, options_.hosts));
}

Result<StartedWorker> ClusterPlaces::start_remote(int rank) {
  const Channel channel = TRY(worker_channel({options_.model, options_.epoch, rank}));
  auto [ours, theirs] = TRY(control_socket_pair());
  const auto process = std::make_shared<RemoteProcess>(loop_, std::move(theirs));
  auto worker = std::make_unique<RemoteWorker>(process);  // ends it on every exit path
  if (!set_starting(process)) {
    return Error{ErrorCode::kCancelled, fmt::format("model {} is being unloaded", options_.model)};
  }
  peers_.open_stream(place(rank).node, channel, [process](Result<FrameConnection> opened) {
    process->on_stream(std::move(opened));
  });
  const Status started = process->wait_started(options_.answer_max);
  set_starting(nullptr);
  if (started.ok()) return StartedWorker{std::move(worker), std::move(ours)};
  const ErrorCode code = started.error().code;
  return Error{code == ErrorCode::kTimeout ? ErrorCode::kPeerLost : code,
               fmt::format("rank {} cannot be started on {}: {}", rank, name(rank),
                           started.error().message)};
}

bool ClusterPlaces::set_starting(std::shared_ptr<RemoteProcess> process) {
  std::lock_guard lock(mutex_);
  starting_ = std::move(process);
  return !is_stopped_;
}

void ClusterPlaces::stop() {
  std::shared_ptr<RemoteProcess> starting;
  {
    std::lock_guard lock(mutex_);
    is_stopped_ = true;
    starting = starting_;
  }
  if (starting) starting->give_up(ErrorCode::kCancelled, "the model is being unloaded");
}

}  // namespace

std::unique_ptr<WorkerPlaces> cluster_worker_places(EventLoop& loop, Peers& peers,
                                                    ClusterPlacesOptions options) {
  LOCKSTEP_CHECK(options.hosts.hosts.size() == options.ranks.size());
  return std::make_unique<ClusterPlaces>(loop, peers, std::move(options));
}

}  // namespace lockstep
