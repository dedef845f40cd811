#include "node/group/worker_group.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/machine/machine.h"
#include "node/wire/event_codec.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPollMax{100};
constexpr milliseconds kReapPoll{2};
// A longer gap between two rounds is our own stall.
constexpr milliseconds kStall{20};
// From the end of a worker's channel to the end of its process.
constexpr milliseconds kExitMax{300};
constexpr milliseconds kEndGrace{200};
constexpr milliseconds kKillMax{5000};
// Reads of one channel in one round, so that a talkative worker cannot hide the others.
constexpr int kReadsPerRound = 32;

}  // namespace

Result<std::unique_ptr<WorkerGroup>> WorkerGroup::launch(const WorkerGroupOptions& options) {
  std::unique_ptr<WorkerGroup> group(new WorkerGroup(options));
  if (!group->options_.places) {
    group->options_.places = local_worker_places(options.command, group->size());
  }
  std::vector<std::unique_ptr<Worker>> workers(static_cast<size_t>(group->size()));
  // Remote ranks first: if a node is not prepared, no model is read in vain here.
  for (const bool is_here : {false, true}) {
    for (int rank = 0; rank < group->size(); ++rank) {
      if (group->options_.places->node_name(rank).empty() != is_here) continue;
      workers[static_cast<size_t>(rank)] = TRY(group->start_worker(rank));
    }
  }
  group->workers_ = std::move(workers);
  group->watch();
  return group;
}

Result<std::unique_ptr<WorkerGroup::Worker>> WorkerGroup::start_worker(int rank) const {
  WorkerSetup setup = options_.setup;
  setup.rank = rank;
  const bool is_here = options_.places->node_name(rank).empty();
  const int threads = setup.spec.threads;
  const bool pin = setup.spec.pin_threads && is_here && threads > 0 &&
                   size() * threads <= available_core_count();
  setup.first_core = pin ? rank * threads : -1;
  StartedWorker started = TRY(options_.places->start(rank));
  std::unique_ptr<Worker> worker(
      new Worker{std::move(started.process), ControlChannel(std::move(started.control))});
  // A worker that is gone already is reported by pump(), with the reason.
  [[maybe_unused]] const Status sent =
      worker->channel.send(static_cast<uint8_t>(Message::kSetup), encode_setup(setup));
  return worker;
}

// For a new attempt at an epoch: a monitor without memory of the last one.
void WorkerGroup::watch() {
  std::vector<WatchedRank> ranks;
  for (const auto& worker : workers_) {
    const int rank = static_cast<int>(ranks.size());
    ranks.push_back({worker->process->pid(), options_.places->node_name(rank)});
  }
  looked_ = Clock::now();
  monitor_.emplace(std::move(ranks), options_.timeouts, looked_);
  phase_ = Phase::kLoading;
  phase_deadline_ = looked_ + options_.load_timeout;
}

WorkerGroup::~WorkerGroup() {
  end();
}

bool WorkerGroup::has_ended() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& w) { return w->ended; });
}

uint64_t WorkerGroup::late_calls() const {
  uint64_t count = 0;
  for (const auto& worker : workers_) count += worker->epoch.late_calls;
  return count;
}

uint64_t WorkerGroup::late_frames() const {
  uint64_t count = 0;
  for (const auto& worker : workers_) count += worker->epoch.late_frames;
  return count;
}

// Both ranks of a pair report the same link; the lower rank's report is used.
std::vector<PairStatus> WorkerGroup::links() const {
  std::vector<PairStatus> links;
  const std::vector<PairTimes>& measured = workers_[0]->epoch.pairs;
  for (int rank = 0; rank < size(); ++rank) {
    for (const LinkUse& use : workers_[static_cast<size_t>(rank)]->epoch.links) {
      if (use.peer < rank) continue;
      const auto is_same = [&](const PairTimes& t) { return t.a == rank && t.b == use.peer; };
      const auto found = std::find_if(measured.begin(), measured.end(), is_same);
      links.push_back({use, found != measured.end() ? *found : PairTimes{rank, use.peer}});
    }
  }
  return links;
}

QuantisationReport WorkerGroup::quantised() const {
  QuantisationReport all;
  for (const auto& worker : workers_) all.add(worker->report.quantised);
  return all;
}

std::vector<RankStatus> WorkerGroup::ranks() const {
  std::vector<RankStatus> ranks;
  for (const auto& worker : workers_) {
    RankStatus status;
    status.rank = static_cast<int>(ranks.size());
    status.pid = worker->process->pid();
    status.node = options_.places->node_name(status.rank);
    status.weight_bytes = worker->report.weight_bytes;
    status.read_bytes = worker->report.read_bytes;
    status.token_bytes = worker->report.token_bytes;
    status.state_bytes = worker->report.state_bytes;
    status.first_layer = worker->report.first_layer;
    status.last_layer = worker->report.last_layer;
    status.device = worker->report.device;
    status.share = options_.setup.spec.shares[ranks.size()];
    ranks.push_back(status);
  }
  return ranks;
}

Status WorkerGroup::pump(int wake_fd, milliseconds limit, WorkerEvents& events) {
  look(wake_fd, limit, events);
  if (const auto verdict = monitor_->check(looked_)) {
    judge(*verdict);
    return verdict->error;
  }
  return advance();
}

// One round of waiting and reading.
void WorkerGroup::look(int wake_fd, milliseconds limit, WorkerEvents& events) {
  wait(wake_fd, limit);
  const Time woken = Clock::now();
  for (int rank = 0; rank < size(); ++rank) {
    read(rank, events);
    reap(rank);
  }
  looked_ = Clock::now();
  if (looked_ - woken > kStall) monitor_->stalled(looked_ - woken);  // in a callback
}

// Time in which this thread did not run is our own fault: the monitor's clocks exclude it.
void WorkerGroup::wait(int wake_fd, milliseconds limit) {
  const Time begin = Clock::now();
  if (begin - looked_ > kStall) monitor_->stalled(begin - looked_);
  std::vector<pollfd> polled{{wake_fd, POLLIN, 0}};
  milliseconds timeout = std::min(limit, kPollMax);
  for (const auto& worker : workers_) {
    if (worker->closed && !worker->ended) timeout = std::min(timeout, kReapPoll);
    if (!worker->channel.is_open()) continue;
    const int events = worker->channel.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
    polled.push_back({worker->channel.fd(), static_cast<short>(events), 0});
  }
  const Time deadline = phase_ == Phase::kLeaving ? phase_deadline_ : monitor_->next_deadline();
  const auto until_deadline = std::chrono::duration_cast<milliseconds>(deadline - begin);
  timeout = std::clamp(until_deadline + milliseconds(1), milliseconds(0), timeout);
  ::poll(polled.data(), static_cast<nfds_t>(polled.size()), static_cast<int>(timeout.count()));
  const auto late = Clock::now() - begin - timeout;
  if (late > kStall) monitor_->stalled(late);
}

void WorkerGroup::read(int rank, WorkerEvents& events) {
  Worker& worker = *workers_[static_cast<size_t>(rank)];
  if (!worker.channel.is_open()) return;
  bool open = worker.channel.flush().ok();
  for (int i = 0; i < kReadsPerRound; ++i) {
    const Result<bool> filled = worker.channel.fill();
    open = open && filled.ok();
    if (!filled.ok() || !filled.value()) break;
    while (true) {
      Result<std::optional<ControlFrame>> frame = worker.channel.next();
      if (!frame.ok()) return misbehaved(rank, frame.error());
      if (!frame.value()) break;
      monitor_->heard(rank, Clock::now());
      const Status handled = handle(rank, *frame.value(), events);
      if (!handled.ok()) return misbehaved(rank, handled.error());
    }
  }
  if (open) return;
  worker.closed = Clock::now();
  worker.channel.close();
}

Status WorkerGroup::handle(int rank, const ControlFrame& frame, WorkerEvents& events) {
  switch (static_cast<Message>(frame.type)) {
    case Message::kHeartbeat:
      monitor_->heartbeat(rank, TRY(decode_heartbeat(frame.payload)), Clock::now());
      return Ok{};
    case Message::kPages:
      events.on_page_counts(rank, TRY(decode_page_counts(frame.payload)));
      return Ok{};
    case Message::kDrafts:
      events.on_draft_counts(TRY(decode_draft_counts(frame.payload)));
      return Ok{};
    case Message::kLinks:
      events.on_link_readings(rank, TRY(decode_link_readings(frame.payload)));
      return Ok{};
    case Message::kEvent:
      return handle_event(frame.payload, events);
    case Message::kBytes:
      return handle_bytes(worker(rank), frame.payload, events);
    case Message::kTimes:
      events.on_times(rank, TRY(decode_times(frame.payload)));
      return Ok{};
    case Message::kPairs:
      events.on_pairs(TRY(decode_pairs(frame.payload)));
      return Ok{};
    default:
      return handle_state(rank, frame);
  }
}

Status WorkerGroup::handle_event(std::string_view payload, WorkerEvents& events) {
  RequestEvent event = TRY(decode_event(payload));
  if (event.as<RequestEvent::Busy>()) {
    return Error{ErrorCode::kCorrupt, "a worker refused a request as a route does"};
  }
  const auto* ended = event.as<RequestEvent::Ended>();
  if (ended && ended->outcome.ok()) {
    for (const auto& worker : workers_) worker->blames = 0;
  }
  events.on_event(std::move(event));
  return Ok{};
}

// A rank that has loaded keeps what it read, when another one loads again.
Status WorkerGroup::handle_bytes(Worker& worker, std::string_view payload, WorkerEvents& events) {
  worker.bytes = TRY(decode_load_bytes(payload));
  LoadBytes all;
  for (const auto& each : workers_) {
    if (each->bytes.whole == 0) return Ok{};
    all.read += std::min(each->bytes.read, each->bytes.whole);
    all.whole += each->bytes.whole;
  }
  events.on_load_bytes(all);
  return Ok{};
}

// Reports of a worker's state. A worker joins only after it has left, so its reports always concern
// the current epoch.
Status WorkerGroup::handle_state(int rank, const ControlFrame& frame) {
  Worker& worker = *workers_[static_cast<size_t>(rank)];
  switch (static_cast<Message>(frame.type)) {
    case Message::kLoaded:
      worker.report = TRY(decode_report(frame.payload));
      worker.is_loaded = true;
      return Ok{};
    case Message::kListening:
      return handle_port(worker, frame.payload);
    case Message::kReady:
      worker.epoch = TRY(decode_epoch_report(frame.payload));
      worker.is_ready = true;
      monitor_->ready(rank, Clock::now());
      return Ok{};
    case Message::kLeft:
      worker.in_epoch = false;
      monitor_->left(rank, TRY(decode_error(frame.payload)).error, Clock::now());
      return Ok{};
    case Message::kFatal:
      worker.is_going = true;
      monitor_->fatal(rank, TRY(decode_error(frame.payload)).error, Clock::now());
      return Ok{};
    default:
      return Error{ErrorCode::kCorrupt, fmt::format("unknown control message {}", frame.type)};
  }
}

// Outside pump() the monitor is not checked, so the process is ended here.
void WorkerGroup::misbehaved(int rank, const Error& error) {
  monitor_->misbehaved(rank, error);
  if (phase_ == Phase::kLeaving) kill_now(worker(rank));
}

// Once all ranks listen, all get the ports.
Status WorkerGroup::handle_port(Worker& worker, std::string_view payload) {
  std::vector<RankListening> own = TRY(decode_listening(payload));
  if (own.size() != 1 || worker.listening) {
    return Error{ErrorCode::kCorrupt, "a worker listens on exactly one port"};
  }
  worker.listening = std::move(own[0]);
  std::vector<RankListening> all;
  if (phase_ != Phase::kJoining) return Ok{};
  for (const auto& each : workers_) {
    if (!each->listening) return Ok{};
    all.push_back(*each->listening);
  }
  for (int rank = 0; rank < size(); ++rank) {
    send(rank, Message::kPorts, encode_listening(all));
  }
  return Ok{};
}

Status WorkerGroup::submit(uint64_t id, const GenerateRequest& request) {
  const std::string payload = encode_request(id, request);
  if (payload.size() >= kControlFrameBytesMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("a prompt of {} tokens is too long", request.prompt.size())};
  }
  send(0, Message::kSubmit, payload);
  return Ok{};
}

// The process is our child and not reaped yet, so its id cannot be another's by now.
void WorkerGroup::kill(int rank, int64_t pid) {
  WorkerProcess& process = *worker(rank).process;
  if (process.pid() == pid) process.kill_now();
}

void WorkerGroup::cancel(uint64_t id) {
  send(0, Message::kCancel, encode_id(id));
}

void WorkerGroup::send(int rank, Message type, std::string_view payload,
                       std::vector<UniqueFd> fds) {
  const Status sent =
      worker(rank).channel.send(static_cast<uint8_t>(type), payload, std::move(fds));
  // A closed channel is noticed when it is read, together with the reason.
  if (!sent.ok() && sent.error().code != ErrorCode::kPeerLost) misbehaved(rank, sent.error());
}

void WorkerGroup::reap(int rank) {
  Worker& worker = *workers_[static_cast<size_t>(rank)];
  if (!worker.closed || worker.ended) return;
  if (const auto exit = worker.process->poll_exit()) {
    worker.ended = true;
    monitor_->ended(rank, *exit, Clock::now());
  } else if (Clock::now() - *worker.closed > kExitMax) {
    misbehaved(rank, Error{ErrorCode::kPeerLost, "it closed its control channel"});
    kill_now(worker);
  }
}

void WorkerGroup::stop(milliseconds limit) {
  if (is_ready()) {
    send(0, Message::kStop, "");
    const Time deadline = Clock::now() + limit;
    while (!has_ended() && Clock::now() < deadline) {
      for (const auto& worker : workers_) {
        // A worker's remaining messages must be read, or it would block on them.
        if (worker->channel.is_open()) {
          if (!worker->channel.flush().ok() || !worker->channel.discard().ok())
            worker->channel.close();
        }
        worker->ended = worker->process->poll_exit().has_value();
      }
      ::poll(nullptr, 0, 1);
    }
  }
  end();
}

void WorkerGroup::end() {
  for (const auto& worker : workers_) {
    if (!worker->process->poll_exit() && worker->channel.is_open()) {
      [[maybe_unused]] const Status sent =
          worker->channel.send(static_cast<uint8_t>(Message::kAbort), "");
    }
  }
  if (wait_ended(kEndGrace)) return;
  for (const auto& worker : workers_) worker->process->kill_now();
  wait_ended(kKillMax);
}

bool WorkerGroup::wait_ended(milliseconds limit) {
  const Time deadline = Clock::now() + limit;
  bool all = true;
  for (const auto& worker : workers_) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    worker->ended = worker->process->wait_exit(std::max(left, milliseconds(0))).has_value();
    all = all && worker->ended;
    if (worker->ended) worker->channel.close();
  }
  return all;
}

}  // namespace lockstep
