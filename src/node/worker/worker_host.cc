#include "node/worker/worker_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kReapPeriod{10};

void refuse(FrameConnection connection, const Error& error) {
  connection.send(encode_worker_refusal(error));
  connection.finish();
}

}  // namespace

WorkerHost::WorkerHost(EventLoop& loop, WorkerCommand command)
    : loop_(loop), command_(std::move(command)) {}

// All are killed before the first is awaited.
WorkerHost::~WorkerHost() {
  for (auto& [name, part] : parts_) {
    for (auto& [rank, slot] : part.slots) {
      slot.relay.stop();
      slot.process->kill_now();
      slot.connection.close();
      if (slot.next) slot.next->close();
    }
  }
}

Status WorkerHost::allow(HostedPart part) {
  const PartName name{part.model, part.epoch};
  for (const int rank : part.hosts.ranks) {
    if (rank < 0 || static_cast<size_t>(rank) >= part.hosts.hosts.size()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("model {} has no rank {}", part.model, rank)};
    }
  }
  const auto found = parts_.find(name);
  if (found == parts_.end() && parts_.size() >= kHostedMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("this node already holds parts of {} placements", kHostedMax)};
  }
  if (found != parts_.end() && found->second.is_forbidden) {
    return Error{ErrorCode::kCancelled,
                 fmt::format("the part of model {} is being unloaded", part.model)};
  }
  parts_[name].allowed = std::move(part);
  return Ok{};
}

void WorkerHost::forbid(const std::string& model, const PlacementEpoch& epoch,
                        std::function<void()> done) {
  const PartName name{model, epoch};
  const auto found = parts_.find(name);
  if (found == parts_.end()) return done();
  Part& part = found->second;
  part.is_forbidden = true;
  part.done.push_back(std::move(done));
  for (auto& [rank, slot] : part.slots) end(name, rank);
  reap();
}

void WorkerHost::on_stream(const NodeId& from, const Channel& channel, FrameConnection connection) {
  const Result<WorkerPurpose> purpose = judge(from, channel);
  if (!purpose.ok()) {
    log_warn("a rank for node {} is not started: {}", from.short_text(), purpose.error().message);
    return refuse(std::move(connection), purpose.error());
  }
  const PartName name{purpose.value().model, purpose.value().epoch};
  const int rank = purpose.value().rank;
  auto& slots = parts_.at(name).slots;
  const auto found = slots.find(rank);
  if (found == slots.end()) return start(name, rank, std::move(connection));
  // The leader has given up the running process, which may hold most of the memory.
  auto& next = found->second.next;
  if (next) refuse(std::move(*next), {ErrorCode::kPeerLost, "a newer request replaced this one"});
  next = std::move(connection);
  end(name, rank);
}

Result<WorkerPurpose> WorkerHost::judge(const NodeId& from, const Channel& channel) const {
  WorkerPurpose purpose = TRY(parse_worker_purpose(channel.purpose));
  const auto found = parts_.find({purpose.model, purpose.epoch});
  if (found == parts_.end()) {
    return Error{ErrorCode::kPeerLost,
                 fmt::format("it is not prepared for ranks of model {}", purpose.model)};
  }
  const Part& part = found->second;
  if (part.is_forbidden) {
    return Error{ErrorCode::kCancelled, fmt::format("it is unloading model {}", purpose.model)};
  }
  if (from != part.allowed.leader) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the node that asks does not lead the group of model {}", purpose.model)};
  }
  const std::vector<int>& own = part.allowed.hosts.ranks;
  if (std::find(own.begin(), own.end(), purpose.rank) == own.end()) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("rank {} of model {} belongs to another node", purpose.rank, purpose.model)};
  }
  return purpose;
}

void WorkerHost::start(const PartName& name, int rank, FrameConnection connection) {
  if (!connection.is_open()) return;
  Part& part = parts_.at(name);
  const HostedPart& allowed = part.allowed;
  Result<StartedWorker> started =
      start_worker_process(command_, flags_of_rank(rank, allowed.files, allowed.hosts));
  if (!started.ok()) return refuse(std::move(connection), started.error());
  Slot& slot = part.slots[rank];
  slot.process = std::move(started.value().process);
  slot.connection = connection;
  connection.send(encode_worker_started(slot.process->pid()));
  slot.relay = FdRelay::start_with_reason(loop_, std::move(started.value().control), connection,
                                          [this, name, rank](const Error&) { end(name, rank); });
}

// The process is reaped later.
void WorkerHost::end(const PartName& name, int rank) {
  Slot& slot = parts_.at(name).slots.at(rank);
  if (slot.is_ending) return;
  slot.is_ending = true;
  slot.relay.stop();
  slot.process->kill_now();
  watch_ending();
}

void WorkerHost::watch_ending() {
  if (std::exchange(is_watching_, true)) return;
  reap_timer_ = loop_.call_after(kReapPeriod, [this] {
    is_watching_ = false;
    reap();
  });
}

void WorkerHost::reap() {
  std::vector<std::function<void()>> done;
  for (auto part = parts_.begin(); part != parts_.end();) {
    reap(part->first, part->second);
    if (!part->second.is_forbidden || !part->second.slots.empty()) {
      ++part;
      continue;
    }
    for (auto& each : part->second.done) done.push_back(std::move(each));
    part = parts_.erase(part);
  }
  for (const auto& each : done) each();
}

void WorkerHost::reap(const PartName& name, Part& part) {
  std::vector<std::pair<int, FrameConnection>> waiting;
  for (auto entry = part.slots.begin(); entry != part.slots.end();) {
    Slot& slot = entry->second;
    const auto how = slot.is_ending ? slot.process->poll_exit() : std::nullopt;
    if (!how) {
      if (slot.is_ending) watch_ending();
      ++entry;
      continue;
    }
    FdRelay::say_why(slot.connection, *how);
    if (slot.next) waiting.emplace_back(entry->first, std::move(*slot.next));
    entry = part.slots.erase(entry);
  }
  for (auto& [rank, connection] : waiting) {
    if (part.is_forbidden) {
      refuse(std::move(connection), {ErrorCode::kCancelled, "it is unloading model " + name.first});
    } else {
      start(name, rank, std::move(connection));
    }
  }
}

size_t WorkerHost::process_count() const {
  size_t count = 0;
  for (const auto& [name, part] : parts_) count += part.slots.size();
  return count;
}

}  // namespace lockstep
