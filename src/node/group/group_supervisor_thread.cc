// The supervising thread of a GroupSupervisor: epoch after epoch, until stop() or until it gives
// up.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/threads/guarded.h"
#include "node/group/group_supervisor.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBackOffMin{100};
constexpr milliseconds kBackOffMax{5000};
constexpr milliseconds kGroupPumpMax{100};
constexpr milliseconds kPreparePause{200};  // before a node that was not prepared is asked again

milliseconds back_off(int failures) {
  return std::min(kBackOffMax, kBackOffMin * (1 << std::clamp(failures - 1, 0, 10)));
}

milliseconds until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return std::clamp(left, milliseconds(0), kGroupPumpMax);
}

Error stopped_error(const std::string& name) {
  return Error{ErrorCode::kCancelled, fmt::format("the model {} is being unloaded", name)};
}

}  // namespace

// An exception fails this model only.
void GroupSupervisor::supervise() {
  const Status ended = guarded([this] { return work(); });
  if (ended.ok()) return finish(ModelStatus::State::kStopped, stopped_error(status().name));
  finish(ModelStatus::State::kFailed, ended.error());
}

// Ok: stop() was called. An error: the group has given up. No worker is left.
Status GroupSupervisor::work() {
  if (is_stopping()) return Ok{};
  Result<std::unique_ptr<WorkerGroup>> launched = launch();
  if (!launched.ok()) return is_stopping() ? Status(Ok{}) : Status(launched.error());
  const std::unique_ptr<WorkerGroup> workers = std::move(launched.value());
  int failures = 0;  // in a row, without becoming ready
  bool was_ever_ready = false;
  Status ended = Ok{};
  while (true) {
    bool was_ready = false;
    if (ended.ok()) ended = serve(*workers, &was_ready);
    if (ended.ok() || is_stopping()) {
      requests_.fail_all(stopped_error(status().name));
      workers->stop(options_.stop_timeout);
      return Ok{};
    }
    // Clients first: ending the epoch takes a moment.
    requests_.hold_submitted(
        {Clock::now() + options_.resume_wait, options_.losses_max, status().context},
        Error{ErrorCode::kPeerLost, ended.error().message});
    was_ever_ready = was_ever_ready || was_ready;
    failures = was_ready ? 1 : failures + 1;
    if (!options_.restarts || !was_ever_ready || failures > options_.failures_max) return ended;
    announce_restart(ended.error());
    ended = form_again(*workers, back_off(failures));
  }
}

// Starts the first processes. Retries nodes that are unreachable or not prepared yet.
Result<std::unique_ptr<WorkerGroup>> GroupSupervisor::launch() {
  const auto deadline = Clock::now() + options_.prepare_timeout;
  for (int failures = 1;; ++failures) {
    Result<std::unique_ptr<WorkerGroup>> launched = WorkerGroup::launch(worker_options());
    if (launched.ok() || launched.error().code != ErrorCode::kPeerLost) return launched;
    if (is_stopping() || Clock::now() > deadline) return launched;
    if (failures == 1) log_info("{}: {}; trying again", status().name, launched.error().message);
    {
      std::lock_guard lock(mutex_);
      status_.last_error = launched.error().message;
    }
    hold(kPreparePause);
  }
}

// Holds requests for this long, while there is no group.
void GroupSupervisor::hold(milliseconds pause) {
  const auto pause_ends = Clock::now() + pause;
  while (!is_stopping() && Clock::now() < pause_ends) {
    take_inbox(nullptr);
    pollfd polled{wake_.fd(), POLLIN, 0};
    const milliseconds limit = until(std::min(pause_ends, requests_.next_deadline()));
    ::poll(&polled, 1, static_cast<int>(limit.count()));
  }
}

// Waits at least `pause`, so that a group that breaks at once is not formed in a tight loop.
Status GroupSupervisor::form_again(WorkerGroup& workers, milliseconds pause) {
  workers.end_epoch();
  const auto pause_ends = Clock::now() + pause;
  while (!is_stopping()) {
    take_inbox(nullptr);
    const milliseconds limit = until(std::min(pause_ends, requests_.next_deadline()));
    const bool is_settled = workers.settle(wake_.fd(), limit, *this);
    if (is_settled && Clock::now() >= pause_ends) break;
  }
  if (is_stopping()) return Ok{};
  TRY(workers.form_again());
  std::lock_guard lock(mutex_);
  status_.ranks = workers.ranks();
  return Ok{};
}

WorkerGroupOptions GroupSupervisor::worker_options() const {
  WorkerGroupOptions options;
  options.setup.spec = options_.spec;
  // A hung rank must be found by its own silence before the others give up on it.
  const milliseconds group_timeout = options_.timeouts.progress + 2 * options_.timeouts.heartbeat;
  options.setup.group_timeout_ms = static_cast<int>(group_timeout.count());
  options.command = {options_.worker_program, options_.worker_arguments, options_.disk_cache};
  options.places = options_.places;
  options.timeouts = options_.timeouts;
  options.load_timeout = options_.load_timeout;
  options.blames_max = options_.failures_max;
  return options;
}

Status GroupSupervisor::serve(WorkerGroup& workers, bool* was_ready) {
  while (!is_stopping()) {
    take_inbox(*was_ready ? &workers : nullptr);
    TRY(workers.pump(wake_.fd(), until(requests_.next_deadline()), *this));
    if (*was_ready) continue;
    if (workers.is_ready()) {
      *was_ready = true;
      announce_ready(workers);
    }
  }
  return Ok{};
}

// With null, while no group is ready, requests are held until one is or their deadline passes.
void GroupSupervisor::take_inbox(WorkerGroup* workers) {
  wake_.drain();
  Inbox inbox;
  {
    std::lock_guard lock(mutex_);
    std::swap(inbox, inbox_);
  }
  for (Submitted& each : inbox.submitted) {
    requests_.add(each.id, std::move(each.request), std::move(each.events),
                  Clock::now() + options_.restart_wait);
  }
  if (workers) {
    requests_.submit_held([workers](uint64_t id, const GenerateRequest& request) {
      return workers->submit(id, request);
    });
  }
  for (uint64_t id : inbox.cancelled) {
    if (requests_.cancel(id) && workers) workers->cancel(id);
  }
  for (const RankStatus& each : inbox.killed) {
    if (workers) workers->kill(each.rank, each.pid);
  }
  if (requests_.next_deadline() <= Clock::now()) {
    const ModelStatus now = status();
    requests_.fail_expired(
        Clock::now(),
        Error{ErrorCode::kPeerLost,
              fmt::format("the model {} is {}, try again{}", now.name,
                          now.state == ModelStatus::State::kLoading ? "being loaded" : "restarting",
                          now.last_error.empty() ? "" : " (" + now.last_error + ")")});
  }
}

void GroupSupervisor::announce_ready(const WorkerGroup& workers) {
  std::unique_lock lock(mutex_);
  status_.state = ModelStatus::State::kReady;
  status_.loading.reset();
  status_.ranks = workers.ranks();
  status_.epoch = workers.epoch();
  status_.late_calls = workers.late_calls();
  status_.late_frames = workers.late_frames();
  status_.links = workers.links();
  link_rates_.assign(status_.links.size(), {});
  status_.context = workers.report().context;
  status_.vocab_size = workers.report().vocab_size;
  status_.identity = workers.report().identity;
  status_.quantised = std::make_shared<const QuantisationReport>(workers.quantised());
  started_.notify_all();
  lock.unlock();
  tell(ModelStatus::State::kReady, "");
}

void GroupSupervisor::announce_restart(const Error& error) {
  log_warn("{}: {}; forming the group again", status().name, error.message);
  std::unique_lock lock(mutex_);
  status_.state = ModelStatus::State::kRestarting;
  status_.last_error = error.message;
  status_.ranks.clear();
  status_.links.clear();
  load_rate_ = {};
  ++status_.restarts;
  lock.unlock();
  tell(ModelStatus::State::kRestarting, error.message);
}

void GroupSupervisor::tell(ModelStatus::State state, const std::string& reason) const {
  if (options_.on_state) options_.on_state(state, reason);
}

// The thread's last act. From here on generate() refuses, so the inbox receives nothing more.
void GroupSupervisor::finish(ModelStatus::State state, const Error& reason) {
  {
    std::lock_guard lock(mutex_);
    status_.state = state;
    status_.ranks.clear();
    status_.loading.reset();
    if (state == ModelStatus::State::kFailed) {
      status_.last_error = reason.message;
      start_error_ = reason;
    }
  }
  take_inbox(nullptr);
  requests_.fail_all(
      Error{state == ModelStatus::State::kFailed ? ErrorCode::kPeerLost : ErrorCode::kCancelled,
            reason.message});
  started_.notify_all();
  tell(state, state == ModelStatus::State::kFailed ? reason.message : "");
}

}  // namespace lockstep
