#include "node/worker_group.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/machine.h"
#include "transport/shm_link.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPollMax{100};
constexpr milliseconds kReapPoll{2};
// A longer gap between asking and looking is a stall of our own.
constexpr milliseconds kStall{20};
// From the end of a worker's channel to the end of its process.
constexpr milliseconds kExitMax{300};
constexpr milliseconds kEndGrace{200};
constexpr milliseconds kKillMax{5000};
// Reads of one channel in one round, so that a talkative worker cannot hide the others.
constexpr int kReadsPerRound = 32;

// Nobody but the members of the group knows it.
std::string random_token() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
  return token;
}

// One shared region for each pair of ranks, as pair_index() counts them.
Result<std::vector<UniqueFd>> create_regions(int size) {
  std::vector<UniqueFd> regions;
  for (int i = 0; i < size * (size - 1) / 2; ++i) {
    regions.push_back(TRY(ShmLink::create_region()));
  }
  return regions;
}

size_t pair_index(int a, int b, int size) {
  const int low = std::min(a, b), high = std::max(a, b);
  return static_cast<size_t>(low * size - low * (low + 1) / 2 + high - low - 1);
}

}  // namespace

Result<std::unique_ptr<WorkerGroup>> WorkerGroup::launch(const WorkerGroupOptions& options,
                                                         uint64_t epoch) {
  std::unique_ptr<WorkerGroup> group(new WorkerGroup(options));
  if (group->options_.program.empty()) group->options_.program = TRY(own_program());
  if (group->options_.arguments.empty()) group->options_.arguments = {"worker"};
  WorkerSetup setup = options.setup;
  setup.epoch = epoch;
  setup.token = random_token();
  const int size = setup.size();
  std::vector<UniqueFd> regions;
  if (setup.link.kind == LinkKind::kShm) regions = TRY(create_regions(size));
  const bool pin = options.pin_threads && size * setup.threads <= available_core_count();
  for (setup.rank = 0; setup.rank < size; ++setup.rank) {
    setup.first_core = pin ? setup.rank * setup.threads : -1;
    std::vector<int> shared;
    setup.link_fds.assign(static_cast<size_t>(size), -1);
    for (int peer = 0; peer < size && !regions.empty(); ++peer) {
      if (peer == setup.rank) continue;
      // The control channel comes first among the inherited descriptors.
      setup.link_fds[static_cast<size_t>(peer)] =
          ChildProcess::kFirstInheritedFd + 1 + static_cast<int>(shared.size());
      shared.push_back(regions[pair_index(setup.rank, peer, size)].get());
    }
    TRY(group->start_worker(setup, shared));
  }
  std::vector<int64_t> pids;
  for (const Worker& worker : group->workers_) pids.push_back(worker.process.pid());
  group->looked_ = Clock::now();
  group->monitor_.emplace(std::move(pids), options.timeouts, group->looked_);
  return group;
}

Status WorkerGroup::start_worker(const WorkerSetup& setup, const std::vector<int>& shared) {
  auto [ours, theirs] = TRY(control_socket_pair());
  ChildProcess::Options child;
  child.program = options_.program;
  child.arguments = options_.arguments;
  child.arguments.push_back("--control-fd");
  child.arguments.push_back(std::to_string(ChildProcess::kFirstInheritedFd));
  child.inherited = {theirs.get()};
  child.inherited.insert(child.inherited.end(), shared.begin(), shared.end());
  ChildProcess process = TRY(ChildProcess::start(child));
  workers_.push_back(Worker{std::move(process), ControlChannel(std::move(ours)), {}});
  // A worker that is gone already shows in pump(), with the reason.
  [[maybe_unused]] const Status sent =
      workers_.back().channel.send(static_cast<uint8_t>(Message::kSetup), encode_setup(setup));
  return Ok{};
}

WorkerGroup::~WorkerGroup() {
  end();
}

bool WorkerGroup::has_ended() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.ended; });
}

QuantisationReport WorkerGroup::quantised() const {
  QuantisationReport all;
  for (const Worker& worker : workers_) all.add(worker.report.quantised);
  return all;
}

std::vector<RankStatus> WorkerGroup::ranks() const {
  std::vector<RankStatus> ranks;
  for (const Worker& worker : workers_) {
    RankStatus status;
    status.rank = static_cast<int>(ranks.size());
    status.pid = worker.process.pid();
    status.weight_bytes = worker.report.weight_bytes;
    status.read_bytes = worker.report.read_bytes;
    status.token_bytes = worker.report.token_bytes;
    status.state_bytes = worker.report.state_bytes;
    ranks.push_back(status);
  }
  return ranks;
}

Status WorkerGroup::pump(int wake_fd, milliseconds limit, WorkerEvents& events) {
  wait(wake_fd, limit);
  const Time woken = Clock::now();
  for (int rank = 0; rank < static_cast<int>(workers_.size()); ++rank) {
    read(rank, events);
    reap(rank);
  }
  looked_ = Clock::now();
  if (looked_ - woken > kStall) monitor_->stalled(looked_ - woken);  // in a callback
  if (auto verdict = monitor_->check(looked_)) {
    // It may be stopped, and could not leave by itself.
    workers_[static_cast<size_t>(verdict->rank)].process.kill_now();
    return std::move(verdict->error);
  }
  return Ok{};
}

// Time in which this thread did not run is nobody else's fault: the monitor's clocks do not count
// it.
void WorkerGroup::wait(int wake_fd, milliseconds limit) {
  const Time begin = Clock::now();
  if (begin - looked_ > kStall) monitor_->stalled(begin - looked_);
  std::vector<pollfd> polled{{wake_fd, POLLIN, 0}};
  milliseconds timeout = std::min(limit, kPollMax);
  for (const Worker& worker : workers_) {
    if (worker.closed && !worker.ended) timeout = std::min(timeout, kReapPoll);
    if (!worker.channel.is_open()) continue;
    const int events = worker.channel.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
    polled.push_back({worker.channel.fd(), static_cast<short>(events), 0});
  }
  const auto until_deadline =
      std::chrono::duration_cast<milliseconds>(monitor_->next_deadline() - begin);
  timeout = std::clamp(until_deadline + milliseconds(1), milliseconds(0), timeout);
  ::poll(polled.data(), static_cast<nfds_t>(polled.size()), static_cast<int>(timeout.count()));
  const auto late = Clock::now() - begin - timeout;
  if (late > kStall) monitor_->stalled(late);
}

void WorkerGroup::read(int rank, WorkerEvents& events) {
  Worker& worker = workers_[static_cast<size_t>(rank)];
  if (!worker.channel.is_open()) return;
  bool open = worker.channel.flush().ok();
  for (int i = 0; i < kReadsPerRound; ++i) {
    const Result<bool> filled = worker.channel.fill();
    open = open && filled.ok();
    if (!filled.ok() || !filled.value()) break;
    while (true) {
      Result<std::optional<ControlFrame>> frame = worker.channel.next();
      if (!frame.ok()) return monitor_->misbehaved(rank, frame.error());
      if (!frame.value()) break;
      monitor_->heard(rank, Clock::now());
      const Status handled = handle(rank, *frame.value(), events);
      if (!handled.ok()) return monitor_->misbehaved(rank, handled.error());
    }
  }
  if (open) return;
  worker.closed = Clock::now();
  worker.channel.close();
}

Status WorkerGroup::handle(int rank, const ControlFrame& frame, WorkerEvents& events) {
  Worker& worker = workers_[static_cast<size_t>(rank)];
  switch (static_cast<Message>(frame.type)) {
    case Message::kHeartbeat:
      monitor_->heartbeat(rank, TRY(decode_heartbeat(frame.payload)), Clock::now());
      return Ok{};
    case Message::kListening:
      return handle_port(worker, frame.payload);
    case Message::kReady:
      worker.report = TRY(decode_report(frame.payload));
      monitor_->ready(rank, Clock::now());
      return Ok{};
    case Message::kToken: {
      const auto token = TRY(decode_token(frame.payload));
      events.on_token(token.first, token.second);
      return Ok{};
    }
    case Message::kLogits: {
      const auto logits = TRY(decode_logits(frame.payload));
      events.on_logits(logits.first, logits.second);
      return Ok{};
    }
    case Message::kEnd: {
      const auto end = TRY(decode_end(frame.payload));
      events.on_end(end.first, end.second);
      return Ok{};
    }
    case Message::kError: {
      auto error = TRY(decode_error(frame.payload));
      events.on_end(error.first, std::move(error.second));
      return Ok{};
    }
    case Message::kTimes:
      events.on_times(rank, TRY(decode_times(frame.payload)));
      return Ok{};
    case Message::kPairs:
      events.on_pairs(TRY(decode_pairs(frame.payload)));
      return Ok{};
    case Message::kFatal:
      monitor_->fatal(rank, TRY(decode_error(frame.payload)).second, Clock::now());
      return Ok{};
    default:
      return Error{ErrorCode::kCorrupt, fmt::format("unknown control message {}", frame.type)};
  }
}

// Once all listen, all learn where.
Status WorkerGroup::handle_port(Worker& worker, std::string_view payload) {
  const std::vector<int> own = TRY(decode_ports(payload));
  if (own.size() != 1 || worker.port >= 0) {
    return Error{ErrorCode::kCorrupt, "a worker listens at one port"};
  }
  worker.port = own[0];
  std::vector<int> ports;
  for (const Worker& each : workers_) {
    if (each.port < 0) return Ok{};
    ports.push_back(each.port);
  }
  for (int rank = 0; rank < static_cast<int>(workers_.size()); ++rank) {
    send(rank, Message::kPorts, encode_ports(ports));
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

void WorkerGroup::cancel(uint64_t id) {
  send(0, Message::kCancel, encode_id(id));
}

void WorkerGroup::send(int rank, Message type, std::string_view payload) {
  Worker& worker = workers_[static_cast<size_t>(rank)];
  const Status sent = worker.channel.send(static_cast<uint8_t>(type), payload);
  // A closed channel is seen when it is read, together with the reason.
  if (!sent.ok() && sent.error().code != ErrorCode::kPeerLost) {
    monitor_->misbehaved(rank, sent.error());
  }
}

void WorkerGroup::reap(int rank) {
  Worker& worker = workers_[static_cast<size_t>(rank)];
  if (!worker.closed || worker.ended) return;
  if (const auto exit = worker.process.poll_exit()) {
    worker.ended = true;
    monitor_->ended(rank, describe(*exit), Clock::now());
  } else if (Clock::now() - *worker.closed > kExitMax) {
    monitor_->misbehaved(rank, Error{ErrorCode::kPeerLost, "it closed its control channel"});
    worker.process.kill_now();
  }
}

void WorkerGroup::stop(milliseconds limit) {
  if (is_ready()) {
    send(0, Message::kStop, "");
    const Time deadline = Clock::now() + limit;
    while (!has_ended() && Clock::now() < deadline) {
      for (Worker& worker : workers_) {
        // What a worker still sends must be read, or it would wait for that.
        if (worker.channel.is_open()) {
          if (!worker.channel.flush().ok() || !worker.channel.discard().ok())
            worker.channel.close();
        }
        worker.ended = worker.process.poll_exit().has_value();
      }
      ::poll(nullptr, 0, 1);
    }
  }
  end();
}

void WorkerGroup::end() {
  for (Worker& worker : workers_) {
    if (!worker.process.poll_exit() && worker.channel.is_open()) {
      [[maybe_unused]] const Status sent =
          worker.channel.send(static_cast<uint8_t>(Message::kAbort), "");
    }
  }
  if (wait_ended(kEndGrace)) return;
  for (Worker& worker : workers_) worker.process.kill_now();
  wait_ended(kKillMax);
}

bool WorkerGroup::wait_ended(milliseconds limit) {
  const Time deadline = Clock::now() + limit;
  bool all = true;
  for (Worker& worker : workers_) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    worker.ended = worker.process.wait_exit(std::max(left, milliseconds(0))).has_value();
    all = all && worker.ended;
    if (worker.ended) worker.channel.close();
  }
  return all;
}

}  // namespace lockstep
