#include "node/group/group_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

// How long a failure that may be an echo waits for its cause. A killed process is noticed within a
// few ms.
constexpr std::chrono::milliseconds kEchoWait{300};

// Errors that another rank's end or silence can cause.
bool may_be_echo(ErrorCode code) {
  return code == ErrorCode::kPeerLost || code == ErrorCode::kTimeout ||
         code == ErrorCode::kCancelled;
}

int64_t in_milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace

GroupMonitor::GroupMonitor(std::vector<WatchedRank> ranks, MonitorTimeouts timeouts, Time now)
    : timeouts_(timeouts) {
  for (WatchedRank& watched : ranks) {
    Rank rank;
    rank.watched = std::move(watched);
    rank.heard = rank.moved = now;
    ranks_.push_back(std::move(rank));
  }
}

void GroupMonitor::heartbeat(int rank, Heartbeat heartbeat, Time now) {
  Rank& of = at(rank);
  if (heartbeat.ticks != of.last.ticks || heartbeat.state != Progress::kComputing) of.moved = now;
  of.heard = now;
  of.last = heartbeat;
}

void GroupMonitor::ready(int rank, Time now) {
  at(rank).ready = true;
  at(rank).heard = at(rank).moved = now;
}

bool GroupMonitor::is_ready() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ready; });
}

void GroupMonitor::fatal(int rank, Error error, Time now) {
  Rank& of = at(rank);
  if (of.fatal) return;
  if (!may_be_echo(error.code)) {
    // Before a rank is ready its errors are about the model, the same on every rank: no echoes.
    if (of.ready) {
      blame(rank, ErrorCode::kPeerLost, fmt::format("{} failed: {}", name(rank), error.message));
    } else {
      blame(rank, error.code, error.message);
    }
  }
  of.fatal = std::move(error);
  of.fatal_at = now;
}

void GroupMonitor::left(int rank, Error error, Time now) {
  Rank& of = at(rank);
  if (of.fatal) return;
  of.has_left = true;
  if (!may_be_echo(error.code)) {
    blame(rank, ErrorCode::kPeerLost, fmt::format("{} gave up: {}", name(rank), error.message),
          false);
  }
  of.fatal = std::move(error);
  of.fatal_at = now;
}

void GroupMonitor::ended(int rank, const std::string& how, Time) {
  const Rank& of = at(rank);
  if (!of.fatal || of.has_left)
    blame(rank, ErrorCode::kPeerLost, fmt::format("{} {}", name(rank), how));
}

void GroupMonitor::misbehaved(int rank, const Error& error) {
  blame(rank, ErrorCode::kPeerLost, fmt::format("{} failed: {}", name(rank), error.message));
}

void GroupMonitor::stalled(std::chrono::nanoseconds duration) {
  for (Rank& rank : ranks_) {
    rank.heard += duration;
    rank.moved += duration;
    if (rank.fatal_at) *rank.fatal_at += duration;
  }
}

std::optional<GroupMonitor::Verdict> GroupMonitor::check(Time now) {
  for (int rank = 0; rank < static_cast<int>(ranks_.size()) && !verdict_; ++rank) {
    const Rank& of = at(rank);
    if (of.fatal) {
      if (now - *of.fatal_at > kEchoWait) {
        blame(rank, ErrorCode::kPeerLost,
              fmt::format("{} gave up: {}", name(rank), of.fatal->message), !of.has_left);
      }
    } else if (now - of.heard > silence_allowed()) {
      blame(rank, ErrorCode::kPeerLost,
            fmt::format("{} has not answered for {} ms (stopped or hung)", name(rank),
                        in_milliseconds(now - of.heard)));
    } else if (is_ready() && now - of.moved > timeouts_.progress) {
      blame(rank, ErrorCode::kPeerLost,
            fmt::format("{} has computed for {} ms without progress (hung)", name(rank),
                        in_milliseconds(now - of.moved)));
    }
  }
  return verdict_;
}

GroupMonitor::Time GroupMonitor::next_deadline() const {
  Time next = Time::max();
  for (const Rank& rank : ranks_) {
    next = std::min(next, rank.fatal ? *rank.fatal_at + kEchoWait : rank.heard + silence_allowed());
    if (is_ready()) next = std::min(next, rank.moved + timeouts_.progress);
  }
  return next;
}

bool GroupMonitor::is_silent(int rank, Time now) const {
  return now - ranks_[static_cast<size_t>(rank)].heard > silence_allowed();
}

std::string GroupMonitor::name(int rank) const {
  const WatchedRank& of = ranks_[static_cast<size_t>(rank)].watched;
  return fmt::format("rank {}{}{}", rank, of.node.empty() ? "" : " on " + of.node,
                     of.pid == 0 ? "" : fmt::format(" (pid {})", of.pid));
}

// The first cause wins.
void GroupMonitor::blame(int rank, ErrorCode code, std::string message, bool must_go) {
  if (!verdict_) verdict_ = Verdict{rank, Error{code, std::move(message)}, must_go};
}

std::chrono::milliseconds GroupMonitor::silence_allowed() const {
  return is_ready() ? timeouts_.heartbeat : timeouts_.loading_heartbeat;
}

}  // namespace lockstep
